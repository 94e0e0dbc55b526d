; calloc's zeroes would wipe out what the kernel wrote before.
; EXPECT: S1-device-value-overwritten
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %d.slot = alloca ptr
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 1048576)
  %d = load ptr, ptr %d.slot
  %c1 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr null)
  call void @set(ptr %d)
  %e6 = call i32 @cudaDeviceSynchronize()
  %h = call ptr @calloc(i64 1048576, i64 1)
  %e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 1048576, i32 2)
  %x = load i32, ptr %h
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  ret i32 %x
}
