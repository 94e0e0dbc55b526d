; Figure 1(a) of the paper as clang leaves it: error checks, the launch stub inlined, the size known at run time.
define void @_Z20__device_stub__scalePfm(ptr %0, i64 %1) {
  ret void
}
define i32 @main(i64 %n) {
entry:
  %ptr.addr = alloca ptr
  %n.addr = alloca i64
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %args = alloca [2 x ptr]
  %d = alloca ptr
  %bytes = shl i64 %n, 2
  %h = call ptr @malloc(i64 %bytes)
  %e1 = call i32 @cudaMalloc(ptr %d, i64 %bytes)
  %ok1 = icmp eq i32 %e1, 0
  br i1 %ok1, label %loop, label %fail
fail:
  call void @exit(i32 1)
  unreachable
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %a = getelementptr inbounds nuw float, ptr %h, i64 %i
  store float 1.0, ptr %a
  %i1 = add nuw i64 %i, 1
  %done = icmp eq i64 %i1, %n
  br i1 %done, label %up, label %loop
up:
  %d1 = load ptr, ptr %d
  %e2 = call i32 @cudaMemcpy(ptr %d1, ptr %h, i64 %bytes, i32 1)
  %e3 = call i32 @__cudaPushCallConfiguration(i64 1, i32 1, i64 256, i32 1, i64 0, ptr null)
  %ok3 = icmp eq i32 %e3, 0
  br i1 %ok3, label %launch, label %down
launch:
  %d2 = load ptr, ptr %d
  store ptr %d2, ptr %ptr.addr
  store i64 %n, ptr %n.addr
  store ptr %ptr.addr, ptr %args
  %args1 = getelementptr inbounds nuw i8, ptr %args, i64 8
  store ptr %n.addr, ptr %args1
  %e4 = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %shared1 = load i64, ptr %shared
  %stream1 = load ptr, ptr %stream
  %e5 = call i32 @cudaLaunchKernel(ptr @_Z20__device_stub__scalePfm, i64 1, i32 1, i64 256, i32 1, ptr %args, i64 %shared1, ptr %stream1)
  br label %down
down:
  %d3 = load ptr, ptr %d
  %e6 = call i32 @cudaMemcpy(ptr %h, ptr %d3, i64 %bytes, i32 2)
  %x = load float, ptr %h
  call void @free(ptr %h)
  %d4 = load ptr, ptr %d
  %e7 = call i32 @cudaFree(ptr %d4)
  ret i32 0
}
@kernel.name = private constant [12 x i8] c"_Z5scalePfm\00"
declare i32 @__cudaRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)
define internal void @__cuda_register_globals(ptr %handle) {
  %e = call i32 @__cudaRegisterFunction(ptr %handle, ptr @_Z20__device_stub__scalePfm, ptr @kernel.name, ptr @kernel.name, i32 -1, ptr null, ptr null, ptr null, ptr null, ptr null)
  ret void
}
