; The pointer is stored where others find it.
; EXPECT: S3-escapes-to-memory
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %d.slot = alloca ptr
  %h = call ptr @malloc(i64 1048576)
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 1048576)
  %d = load ptr, ptr %d.slot
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 1048576, i1 false)
  %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 1048576, i32 1)
  store ptr %h, ptr @global
  %c1 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr null)
  call void @update(ptr %d)
  %e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 1048576, i32 2)
  %x = load i32, ptr %h
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  ret i32 %x
}
