//! How long an iteration takes: the median interval between recurrences of the dominant copy site, as the library stamps them. A program
//! without a loop is timed as a whole.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;

/// Nanoseconds of an iteration of a run whose stamps are in the file.
pub(crate) fn iteration(stamps: &Path, wall: Duration) -> Result<u64, Failure> {
    let text = match fs::read_to_string(stamps) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::io(stamps, "read", &error)),
    };
    let times: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
    let times = times.map_err(|error| Failure::File {
        path: stamps.to_owned(),
        reason: format!("these are no loop times of libecho_dr.so: {error}"),
    })?;
    Ok(median_interval(times).unwrap_or_else(|| u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)))
}

/// `None` if nothing recurs. The lower of the two in the middle, if there are two.
fn median_interval(mut times: Vec<u64>) -> Option<u64> {
    // Threads stamp by themselves.
    times.sort_unstable();
    let mut intervals: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    intervals.sort_unstable();
    intervals.get(intervals.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_interval_is_not_moved_by_a_slow_first_iteration() {
        assert_eq!(median_interval(vec![0, 900, 1000, 1102]), Some(102));
        assert_eq!(median_interval(vec![100, 0]), Some(100));
        assert_eq!(median_interval(vec![5]), None);
        assert_eq!(median_interval(vec![]), None);
    }

    #[test]
    fn without_recurrences_the_whole_run_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times");
        assert_eq!(iteration(&path, Duration::from_micros(3)).unwrap(), 3000);
        fs::write(&path, "7\n").unwrap();
        assert_eq!(iteration(&path, Duration::from_micros(3)).unwrap(), 3000);
        fs::write(&path, "7\n27\n").unwrap();
        assert_eq!(iteration(&path, Duration::from_micros(3)).unwrap(), 20);
        fs::write(&path, "seven\n").unwrap();
        assert!(iteration(&path, Duration::ZERO).unwrap_err().to_string().contains("no loop times"));
    }
}
