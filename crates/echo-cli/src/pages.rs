//! The pages of `docs/remarks`, compiled in: what each number means and what to do. `ESR…` are said by Echo-SR, `EDR…` by Echo-DR.

use include_dir::{Dir, include_dir};

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/remarks");

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// `ESR210`
    pub number: &'static str,
    /// `S1-device-value-overwritten`
    pub code: &'static str,
    /// The message, with `…` for what differs.
    pub message: &'static str,
    /// All of it, in Markdown.
    pub text: &'static str,
}

/// What Echo-SR says.
pub const STATIC: &str = "ESR";
/// What Echo-DR says.
pub const RUN_TIME: &str = "EDR";

/// The pages of one of the two, by number.
#[must_use]
pub fn all(family: &str) -> Vec<Page> {
    let pages = FOLDER.files().filter_map(|file| parse(file.contents_utf8()?));
    let mut pages: Vec<Page> = pages.filter(|page| page.number.starts_with(family)).collect();
    pages.sort_unstable_by_key(|page| page.number);
    pages
}

/// The page of a number or code; case does not matter.
#[must_use]
pub fn find(name: &str) -> Option<Page> {
    let is_it = |page: &Page| page.number.eq_ignore_ascii_case(name) || page.code.eq_ignore_ascii_case(name);
    [STATIC, RUN_TIME].iter().find_map(|family| all(family).into_iter().find(is_it))
}

/// A page starts with `# NUMBER CODE`, and the first quotation is the message. Other files of the folder do not.
fn parse(text: &'static str) -> Option<Page> {
    let title = text.lines().next()?.strip_prefix("# ")?;
    let (number, code) = title.split_once(' ')?;
    let message = text.lines().find_map(|line| line.strip_prefix("> "))?;
    [STATIC, RUN_TIME].iter().any(|family| number.starts_with(family)).then_some(Page { number, code, message, text })
}

impl Page {
    /// The first paragraph of a section.
    #[must_use]
    pub fn section(&self, title: &str) -> Option<String> {
        let mut lines = self.text.lines().skip_while(|line| line.strip_prefix("## ") != Some(title)).skip(1);
        let first = lines.find(|line| !line.trim().is_empty())?;
        let rest = lines.take_while(|line| !line.trim().is_empty());
        Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_folder_is_read() {
        for family in [STATIC, RUN_TIME] {
            let files = FOLDER.files().filter(|file| file.path().to_string_lossy().starts_with(family)).count();
            assert!(files > 20 && all(family).len() == files, "{family}");
        }
    }

    #[test]
    fn every_page_has_its_sections() {
        let has = |page: &Page, title| page.section(title).is_some_and(|text| !text.is_empty());
        for page in all(STATIC).into_iter().chain(all(RUN_TIME)) {
            for title in ["What it means", "What to do"] {
                assert!(has(&page, title), "{} has no {title}", page.number);
            }
            assert!(!page.number.starts_with(STATIC) || has(&page, "A program that gets it"), "{}", page.number);
        }
    }

    #[test]
    fn a_page_is_found_by_number_and_by_code() {
        let page = find("esr210").expect("ESR210");
        assert_eq!(page.code, "S1-device-value-overwritten");
        assert_eq!(find("s1-device-value-overwritten"), Some(page));
        assert_eq!(find("EDR340").map(|page| page.code), Some("host-touched"));
        assert_eq!(find("ESR999"), None);
    }
}
