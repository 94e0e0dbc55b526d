//! The pages of `docs/remarks`, compiled in: what each number means and what to do.

use include_dir::{Dir, include_dir};

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/remarks");

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// `ESR210`
    pub(crate) number: &'static str,
    /// `S1-device-value-overwritten`
    pub(crate) code: &'static str,
    /// The message, with `…` for what differs.
    pub(crate) message: &'static str,
    /// All of it, in Markdown.
    pub(crate) text: &'static str,
}

/// All pages, by number.
pub(crate) fn all() -> Vec<Page> {
    let mut pages: Vec<Page> = FOLDER.files().filter_map(|file| parse(file.contents_utf8()?)).collect();
    pages.sort_unstable_by_key(|page| page.number);
    pages
}

/// The page of a number or code; case does not matter.
pub(crate) fn find(name: &str) -> Option<Page> {
    all().into_iter().find(|page| page.number.eq_ignore_ascii_case(name) || page.code.eq_ignore_ascii_case(name))
}

/// A page starts with `# NUMBER CODE`, and the first quotation is the message. Other files of the folder do not.
fn parse(text: &'static str) -> Option<Page> {
    let title = text.lines().next()?.strip_prefix("# ")?;
    let (number, code) = title.split_once(' ')?;
    let message = text.lines().find_map(|line| line.strip_prefix("> "))?;
    number.starts_with("ESR").then_some(Page { number, code, message, text })
}

impl Page {
    /// The first paragraph of a section.
    pub(crate) fn section(&self, title: &str) -> Option<String> {
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
        let files = FOLDER.files().filter(|file| file.path().to_string_lossy().starts_with("ESR")).count();
        assert_eq!(all().len(), files);
    }

    #[test]
    fn every_page_has_its_sections() {
        for page in all() {
            for title in ["What it means", "A program that gets it", "What to do"] {
                assert!(page.section(title).is_some_and(|text| !text.is_empty()), "{} has no {title}", page.number);
            }
        }
    }

    #[test]
    fn a_page_is_found_by_number_and_by_code() {
        let page = find("esr210").expect("ESR210");
        assert_eq!(page.code, "S1-device-value-overwritten");
        assert_eq!(find("s1-device-value-overwritten"), Some(page));
        assert_eq!(find("ESR999"), None);
    }
}
