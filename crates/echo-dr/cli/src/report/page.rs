//! The page itself: one HTML file that needs nothing else, not even a script. It is given texts and numbers and decides nothing.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::timeline::{Bar, Kind, Timeline};

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// The program and its arguments.
    pub(crate) command: String,
    /// One sentence on the outcome.
    pub(crate) outcome: String,
    /// Figures: what, value.
    pub(crate) figures: Vec<(String, String)>,
    /// An iteration without the plan.
    pub(crate) before: Option<Timeline>,
    /// An iteration with it.
    pub(crate) after: Option<Timeline>,
    /// Where `after` comes from, in a sentence.
    pub(crate) after_is: String,
    /// Pairs of the plan.
    pub(crate) pairs: Vec<Row>,
    /// What is not merged: what, why.
    pub(crate) rejected: Vec<(String, String)>,
    /// What the plan holds for: what, value.
    pub(crate) context: Vec<(String, String)>,
}

/// One pair of the plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub(crate) number: String,
    pub(crate) host: String,
    pub(crate) device: String,
    pub(crate) size: String,
    pub(crate) copies: String,
    pub(crate) backend: String,
    pub(crate) gain: String,
    pub(crate) state: String,
}

/// Colours are chosen so that each pair of neighbours differs in lightness too.
const STYLE: &str = "
:root { color-scheme: light dark; --back: #fff; --text: #1a1d21; --soft: #59616b; --line: #d4d9df; --copy: #d2622a; --launch: #2a6fb8;
  --wait: #9aa3ad; --memory: #7a4fb0; --good: #1d7a46; }
@media (prefers-color-scheme: dark) { :root { --back: #15181c; --text: #e6e9ed; --soft: #9aa4af; --line: #343b44; --copy: #f0874f;
  --launch: #5fa3ea; --wait: #6b7580; --memory: #b08ae0; --good: #5cc98c; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.outcome { font-size: 1.1rem; } .soft { color: var(--soft); }
.figures { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; padding: 0; list-style: none; }
.figures li { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; }
.figures b { display: block; font-size: 1.25rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: var(--soft); }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.copy { fill: var(--copy); } .launch { fill: var(--launch); } .wait { fill: var(--wait); } .memory { fill: var(--memory); }
.axis { stroke: var(--line); }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .35rem 0 1rem; border-radius: .15rem; }
.key .copy { background: var(--copy); } .key .launch { background: var(--launch); } .key .wait { background: var(--wait); }
.key .memory { background: var(--memory); }
";

/// The page as text.
pub(crate) fn render(page: &Page) -> String {
    let scale = [&page.before, &page.after].into_iter().flatten().map(|timeline| timeline.length).max().unwrap_or(1);
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Echo-DR: " (page.command) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Echo-DR report" }
                    p { code { (page.command) } }
                    p.outcome { (page.outcome) }
                }
                ul.figures { @for (what, value) in &page.figures { li { b { (value) } (what) } } }
                (timelines(page, scale))
                (pairs(&page.pairs))
                (list("Not merged", &["What", "Why"], &page.rejected, "Nothing was rejected."))
                (list("The plan holds for", &["What", "Value"], &page.context, "Nothing: there is no context."))
                p.soft {
                    "Elsewhere the program runs as it is. Echo-DR's guarantee is for runs that behave like the profiled ones: it watched the "
                    "host's accesses in a validation run, not in later ones."
                }
            }
        }
    };
    body.into_string()
}

fn timelines(page: &Page, scale: u64) -> Markup {
    html! {
        section {
            h2 { "An iteration in the steady state" }
            @if page.before.is_none() {
                p { "The trace shows no loop: the dominant copy does not recur." }
            }
            @if let Some(before) = &page.before {
                p.key { "Time in"
                    @for kind in Kind::ALL { span class=(kind.class()) {} (kind.name()) }
                    ". What is blank is the program's own work."
                }
                h3 { "Before: " (duration(before.length)) }
                (drawing(before, scale, "before"))
                (calls(before))
            }
            @if let Some(after) = &page.after {
                h3 { "After: " (duration(after.length)) }
                p.soft { (page.after_is) }
                (drawing(after, scale, "after"))
                (calls(after))
            }
        }
    }
}

const WIDTH: f64 = 1000.0;
const LANE: u32 = 34;

/// A bar a call. A call that is too short to see still gets a hair's breadth.
fn drawing(timeline: &Timeline, scale: u64, id: &str) -> Markup {
    let x = |time: u64| time as f64 / scale.max(1) as f64 * WIDTH;
    let lanes = timeline.lanes();
    let height = lanes.len() as u32 * LANE + 16;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-labelledby=(format!("{id}-title")) {
            title id=(format!("{id}-title")) { "Timeline of an iteration, " (id) " merging: " (duration(timeline.length)) }
            @for (index, lane) in (0_u32..).zip(&lanes) {
                text x="0" y=(index * LANE + 10) { "thread " (lane) }
                line.axis x1="0" x2=(number(x(timeline.length))) y1=(index * LANE + 30) y2=(index * LANE + 30) {}
                @for bar in timeline.bars.iter().filter(|bar| bar.thread == *lane) {
                    rect class=(bar.kind.class()) x=(number(x(bar.start))) y=(index * LANE + 14)
                        width=(number(x(bar.took).max(0.6))) height="16" {
                        title { (bar.text) ", " (duration(bar.took)) }
                    }
                }
            }
            text x=(number(x(timeline.length).clamp(40.0, WIDTH))) y=(height - 3) text-anchor="end" { (duration(timeline.length)) }
        }
    }
}

fn calls(timeline: &Timeline) -> Markup {
    let row = |bar: &Bar| {
        html! { tr { td { (duration(bar.start)) } td { (duration(bar.took)) } td { (bar.thread) } td { (bar.text) } } }
    };
    html! {
        details {
            summary { (timeline.bars.len()) " calls" @if timeline.left_out > 0 { " (" (timeline.left_out) " more are not shown)" } }
            div.wide { table {
                thead { tr { th { "At" } th { "Took" } th { "Thread" } th { "Call" } } }
                tbody { @for bar in &timeline.bars { (row(bar)) } }
            } }
        }
    }
}

fn pairs(rows: &[Row]) -> Markup {
    html! {
        section {
            h2 { "Pairs" }
            @if rows.is_empty() {
                p { "No pair of a host and a device buffer can be merged." }
            } @else {
                div.wide { table {
                    thead { tr {
                        @for head in ["Pair", "Host buffer", "Device buffer", "Size", "Copies skipped an iteration", "Backend",
                            "Gain", "State"] { th scope="col" { (head) } }
                    } }
                    tbody { @for row in rows { tr {
                        td { (row.number) } td { code { (row.host) } } td { code { (row.device) } } td { (row.size) }
                        td { (row.copies) } td { (row.backend) } td { (row.gain) } td { (row.state) }
                    } } }
                } }
            }
        }
    }
}

fn list(title: &str, heads: &[&str; 2], rows: &[(String, String)], none: &str) -> Markup {
    html! {
        section {
            h2 { (title) }
            @if rows.is_empty() { p { (none) } } @else {
                div.wide { table {
                    thead { tr { @for head in heads { th scope="col" { (head) } } } }
                    tbody { @for (what, why) in rows { tr { td { (what) } td { (why) } } } }
                } }
            }
        }
    }
}

fn number(value: f64) -> String {
    format!("{value:.2}")
}

/// Nanoseconds for people.
pub(crate) fn duration(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use echo_dr_format::site::Site;

    use super::*;

    fn page() -> Page {
        let bar =
            |start, took, kind, text: &str| Bar { start, took, thread: 0, site: Site(0), kind, text: text.to_owned() };
        let before = Timeline {
            length: 1000,
            bars: vec![
                bar(0, 400, Kind::Copy, "cudaMemcpy <h> & \"d\""),
                bar(500, 20, Kind::Launch, "cudaLaunchKernel"),
            ],
            left_out: 0,
        };
        Page {
            command: "./app <script>alert(1)</script>".into(),
            outcome: "1 pair is merged".into(),
            figures: vec![("share of copies".into(), "40 %".into())],
            after: Some(Timeline {
                length: 600,
                bars: vec![bar(100, 20, Kind::Wait, "cudaDeviceSynchronize")],
                left_out: 3,
            }),
            before: Some(before),
            after_is: "Computed.".into(),
            pairs: vec![Row { number: "0".into(), host: "main a.cu:3".into(), ..Row::default() }],
            rejected: vec![("malloc <a>".into(), "written while the GPU works".into())],
            context: vec![("host".into(), "orin".into())],
        }
    }

    fn errors(text: &str) -> Vec<String> {
        scraper::Html::parse_document(text).errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_page_is_valid_and_complete() {
        for page in [page(), Page::default()] {
            let text = render(&page);
            assert_eq!(errors(&text), Vec::<String>::new(), "{text}");
            assert!(text.contains("<h2>Pairs</h2>") && text.contains("Not merged"), "{text}");
        }
        assert!(!errors("<p><table></p>").is_empty(), "the parser sees errors");
    }

    #[test]
    fn the_page_asks_for_nothing_from_outside_and_runs_nothing() {
        let text = render(&page());
        for forbidden in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
            assert!(!text.contains(forbidden), "{forbidden} in {text}");
        }
        assert!(text.contains("&lt;script&gt;") && text.contains("cudaMemcpy &lt;h&gt; &amp; "), "texts are escaped");
    }

    #[test]
    fn both_drawings_have_one_scale() {
        let text = render(&page());
        assert!(text.contains(r#"x2="1000.00""#) && text.contains(r#"x2="600.00""#), "{text}");
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        assert_eq!([0, 1500, 2_500_000, 3_000_000_000].map(duration), ["0 ns", "1.5 µs", "2.50 ms", "3.00 s"]);
    }
}
