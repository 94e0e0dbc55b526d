//! How the values of a kernel's parameters lie in one packed block of bytes.

use crate::KernelInfo;

impl KernelInfo {
    /// Offset of each parameter in the packed block: in order, each at the next multiple of its alignment.
    pub fn param_offsets(&self) -> impl Iterator<Item = usize> {
        self.params.iter().scan(0usize, |end, param| {
            let offset = end.next_multiple_of(param.align.max(1) as usize);
            *end = offset + param.size as usize;
            Some(offset)
        })
    }

    /// Bytes of the packed block.
    pub fn packed_len(&self) -> usize {
        self.param_offsets().zip(&self.params).last().map_or(0, |(offset, param)| offset + param.size as usize)
    }
}

#[cfg(test)]
mod tests {
    use crate::{KernelInfo, ParamInfo, ThreadMode};

    #[test]
    fn parameters_lie_at_multiples_of_their_alignment() {
        let params = [(4, 4), (8, 8), (1, 1), (12, 4)].map(|(size, align)| ParamInfo { size, align }).to_vec();
        let kernel = KernelInfo {
            name: "k".into(),
            symbol: "k".into(),
            params,
            static_shared: 0,
            mode: ThreadMode::Block,
            max_threads: 1024,
        };
        assert_eq!(kernel.param_offsets().collect::<Vec<_>>(), [0, 8, 16, 20]);
        assert_eq!(kernel.packed_len(), 32);
    }
}
