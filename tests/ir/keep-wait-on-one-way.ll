; Only one way to the read waits.
; EXPECT: S2-kernel-pending S5-host-access-in-flight
define i32 @main(i32 %argc, ptr %argv) {
entry:
  %h.slot = alloca ptr
  %d.slot = alloca ptr
  %s.slot = alloca ptr
  %t.slot = alloca ptr
  %v.slot = alloca ptr
  %e0 = call i32 @cudaMallocHost(ptr %h.slot, i64 1048576)
  %e1 = call i32 @cudaMalloc(ptr %d.slot, i64 1048576)
  %h = load ptr, ptr %h.slot
  %d = load ptr, ptr %d.slot
  %e10 = call i32 @cudaStreamCreateWithFlags(ptr %s.slot, i32 1)
  %e11 = call i32 @cudaStreamCreateWithFlags(ptr %t.slot, i32 1)
  %e12 = call i32 @cudaEventCreate(ptr %v.slot)
  %s = load ptr, ptr %s.slot
  %t = load ptr, ptr %t.slot
  %v = load ptr, ptr %v.slot
  call void @llvm.memset.p0.i64(ptr %h, i8 1, i64 1048576, i1 false)
  %e2 = call i32 @cudaMemcpyAsync(ptr %d, ptr %h, i64 1048576, i32 1, ptr %s)
  %c1 = call i32 @__cudaPushCallConfiguration(i64 4294971392, i32 1, i64 4294967552, i32 1, i64 0, ptr %s)
  call void @update(ptr %d)
  %e3 = call i32 @cudaMemcpyAsync(ptr %h, ptr %d, i64 1048576, i32 2, ptr %s)
  %some = icmp sgt i32 %argc, 1
  br i1 %some, label %wait, label %go
wait:
  %e5 = call i32 @cudaStreamSynchronize(ptr %s)
  br label %go
go:
  %x = load i32, ptr %h
  %e8 = call i32 @cudaFreeHost(ptr %h)
  %e4 = call i32 @cudaFree(ptr %d)
  ret i32 %x
}
