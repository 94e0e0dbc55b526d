; A function that nobody modelled may use the pointer that a kernel kept.
; EXPECT: S1-host-value-overwritten S3-captured-across-threads S4-may-be-reset S5-threads
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %d.slot = alloca ptr
  %o.slot = alloca ptr
  %h = call ptr @malloc(i64 1048576)
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 1048576)
  %e0 = call i32 @cudaMalloc(ptr %o.slot, i64 1048576)
  %d = load ptr, ptr %d.slot
  %o = load ptr, ptr %o.slot
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 1048576, i1 false)
  %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 1048576, i32 1)
  %c1 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr null)
  call void @keep(ptr %d)
  call void @unknown()
  %e6 = call i32 @cudaDeviceSynchronize()
  %x = load i32, ptr %h
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  %e7 = call i32 @cudaFree(ptr %o)
  ret i32 %x
}
