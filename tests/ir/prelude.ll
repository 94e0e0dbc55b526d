; What every program of this folder has around its `main`: declarations, and the launch stubs as clang makes them. tests/ir.rs adds which
; kernel each stub launches, and the device half (device.ll). `mystery` is a kernel of which nothing is known.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.dim3 = type { i32, i32, i32 }

@global = global ptr null
@format = private constant [3 x i8] c"%p\00"

declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare ptr @_Znwm(i64)
declare void @_ZdlPvm(ptr, i64)
declare void @exit(i32) noreturn
declare i32 @printf(ptr, ...)
declare i64 @fread(ptr, i64, i64, ptr)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @fork()
declare i32 @_setjmp(ptr) returns_twice
declare void @unknown()
declare void @unknown_with(ptr)

declare i32 @cudaMalloc(ptr, i64)
declare i32 @cudaMallocAsync(ptr, i64, ptr)
declare i32 @cudaMallocHost(ptr, i64)
declare i32 @cudaMallocPitch(ptr, ptr, i64, i64)
declare i32 @cudaFree(ptr)
declare i32 @cudaFreeAsync(ptr, ptr)
declare i32 @cudaFreeHost(ptr)
declare i32 @cudaMemcpy(ptr, ptr, i64, i32)
declare i32 @cudaMemcpyAsync(ptr, ptr, i64, i32, ptr)
declare i32 @cudaMemcpyToSymbol(ptr, ptr, i64, i64, i32)
declare i32 @cudaMemset(ptr, i32, i64)
declare i32 @cudaDeviceSynchronize()
declare i32 @cudaDeviceReset()
declare i32 @cudaSetDevice(i32)
declare i32 @cudaStreamCreate(ptr)
declare i32 @cudaStreamCreateWithFlags(ptr, i32)
declare i32 @cudaStreamSynchronize(ptr)
declare i32 @cudaStreamWaitEvent(ptr, ptr, i32)
declare i32 @cudaStreamBeginCapture(ptr, i32)
declare i32 @cudaEventCreate(ptr)
declare i32 @cudaEventRecord(ptr, ptr)
declare i32 @cudaEventSynchronize(ptr)
declare i32 @cudaHostRegister(ptr, i64, i32)
declare i32 @cudaPointerGetAttributes(ptr, ptr)
declare i32 @cudaLaunchHostFunc(ptr, ptr, ptr)
declare i32 @cudaNotYetKnown(ptr)
declare i32 @__cudaPushCallConfiguration(i64, i32, i64, i32, i64, ptr)
declare i32 @__cudaPopCallConfiguration(ptr, ptr, ptr, ptr)
declare i32 @cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)

define void @update(ptr %p0) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @update, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @map(ptr %p0, ptr %p1) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @map, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @set(ptr %p0) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @set, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @count_up(ptr %p0) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @count_up, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @keep(ptr %p0) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @keep, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @use_kept() {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @use_kept, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @spin() {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @spin, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}

define void @mystery(ptr %p0) {
  %grid = alloca %struct.dim3
  %block = alloca %struct.dim3
  %shared = alloca i64
  %stream = alloca ptr
  %e = call i32 @__cudaPopCallConfiguration(ptr %grid, ptr %block, ptr %shared, ptr %stream)
  %s = load ptr, ptr %stream
  %l = call i32 @cudaLaunchKernel(ptr @mystery, i64 1, i32 1, i64 1, i32 1, ptr null, i64 0, ptr %s)
  ret void
}
