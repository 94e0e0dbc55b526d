; The size comes from the command line and is written in two ways; the allocation is checked.
; EXPECT: merged
; CHECK-NOT: @cudaMemcpy(
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %d.slot = alloca ptr
  %n = sext i32 %argc to i64
  %bytes = shl nsw i64 %n, 2
  %h = call ptr @malloc(i64 %bytes)
  %same = mul nsw i64 %n, 4
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 %same)
  %failed = icmp ne i32 %e1, 0
  br i1 %failed, label %stop, label %made
stop:
  call void @exit(i32 1)
  unreachable
made:
  %d = load ptr, ptr %d.slot
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 %bytes, i1 false)
  %e2 = call i32 @cudaMemcpy(ptr %d, ptr %h, i64 %bytes, i32 1)
  %c1 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr null)
  call void @update(ptr %d)
  %e3 = call i32 @cudaMemcpy(ptr %h, ptr %d, i64 %bytes, i32 2)
  %x = load i32, ptr %h
  call void @free(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  ret i32 %x
}
