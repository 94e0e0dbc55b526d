; In the program, the upload of h to another buffer has read h when the call returns; a copy of merged memory need not have.
; EXPECT: S2-copy-pending S5-host-access-in-flight
; EXPECT: CAND-no-whole-copy
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
  %e9 = call i32 @cudaMemcpyAsync(ptr %o, ptr %h, i64 64, i32 1, ptr null)
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 1048576, i1 false)
  %e6 = call i32 @cudaDeviceSynchronize()
  %x = load i32, ptr %h
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  %e7 = call i32 @cudaFree(ptr %o)
  ret i32 %x
}
