; The driver may read h with the CPU for the copy to another buffer, while unrelated work is running.
; EXPECT: S5-host-access-in-flight
; EXPECT: CAND-no-whole-copy
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %d.slot = alloca ptr
  %o.slot = alloca ptr
  %s.slot = alloca ptr
  %e10 = call i32 @cudaStreamCreateWithFlags(ptr %s.slot, i32 1)
  %s = load ptr, ptr %s.slot
  %h = call ptr @malloc(i64 1048576)
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 1048576)
  %d = load ptr, ptr %d.slot
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 1048576, i1 false)
  %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 1048576, i32 1)
  %c2 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr %s)
  call void @spin()
  %e20 = call i32 @cudaMalloc(ptr %o.slot, i64 1048576)
  %o = load ptr, ptr %o.slot
  %e9 = call i32 @cudaMemcpy(ptr %o, ptr %h, i64 64, i32 1)
  %e15 = call i32 @cudaDeviceSynchronize()
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  ret i32 0
}
