//! Whole programs: the shape of the graph.

use super::text;

/// See the file.
pub(crate) const FIGURE_1: &str = include_str!("figure_1.ll");

#[test]
fn figure_1_of_the_paper() {
    let expected = "\
object Host Malloc dynamic
object Device CudaMalloc dynamic
0: skip
1: alloc 0
2: alloc 1 -> [3, 5]
3: skip
4: exit returns=false
5: skip
6: host write 0 [dyn+4] -> [5, 7]
7: skip
8: copy 1 whole <- 0 whole on LegacyDefault#0 before=1 after=0 consumed=1 -> [9, 11]
9: skip
10: enqueue LegacyDefault#0 Launch _Z5scalePfm read? 1 [?] write? 1 [?] captures [1] touches-captured
11: skip
12: copy 0 whole <- 1 whole on LegacyDefault#0 before=1 after=1 consumed=1
13: host read 0 [0+4]
14: free 0
15: free 1 waits device
16: exit returns=true";
    assert_eq!(text(FIGURE_1), expected);
}
