; The device half of every program in this folder: what the kernels do is derived from here and embedded as clang embeds it.
target triple = "nvptx64-nvidia-cuda"

@saved = internal addrspace(1) global ptr null

; d[0] *= 2
define ptx_kernel void @update(ptr %d) {
  %x = load i32, ptr %d
  %y = shl i32 %x, 1
  store i32 %y, ptr %d
  ret void
}

; out[0] = in[0]
define ptx_kernel void @map(ptr %in, ptr %out) {
  %x = load i32, ptr %in
  store i32 %x, ptr %out
  ret void
}

; d[0] = 1
define ptx_kernel void @set(ptr %d) {
  store i32 1, ptr %d
  ret void
}

; All 262144 elements, if there are as many threads: d[i] = i
define ptx_kernel void @count_up(ptr %d) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %before = mul i32 %block, %width
  %i = add i32 %before, %thread
  %inside = icmp ult i32 %i, 262144
  br i1 %inside, label %store, label %end
store:
  %at = zext i32 %i to i64
  %p = getelementptr inbounds i32, ptr %d, i64 %at
  store i32 %i, ptr %p
  br label %end
end:
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

; saved = d: the pointer outlives the launch
define ptx_kernel void @keep(ptr %d) {
  store ptr %d, ptr addrspace(1) @saved
  ret void
}

; saved[0] = 1
define ptx_kernel void @use_kept() {
  %p = load ptr, ptr addrspace(1) @saved
  store i32 1, ptr %p
  ret void
}

; Nothing.
define ptx_kernel void @spin() {
  ret void
}
