//! SARIF 2.1.0, for code scanning and editors: one result a broken condition, one a pair that can be merged.

use std::path::Path;

use echo_cli::pages;
use echo_report::{Outcome, PairReport, Place, ReasonReport};
use serde_json::{Value, json};

use crate::baseline::Fingerprint;
use crate::finding::{Finding, demangled};

/// A unit that could not be analysed, and why.
pub(crate) struct Failed {
    /// Its path, as findings have it.
    pub(crate) unit: String,
    /// What the compiler said.
    pub(crate) reason: String,
}

/// Name of the base that relative paths are relative to.
const ROOT: &str = "SRCROOT";

/// The log. `docs`: address of the pages, if there is one.
pub(crate) fn log(findings: &[Finding], failed: &[Failed], root: &Path, docs: Option<&str>) -> Value {
    let rules: Vec<Value> = pages::all(pages::STATIC).iter().map(|page| rule(page, docs)).collect();
    let results: Vec<Value> = findings.iter().flat_map(results).collect();
    let notifications: Vec<Value> = failed
        .iter()
        .map(|failed| {
            json!({
                "level": "error",
                "message": { "text": failed.reason },
                "locations": [{ "physicalLocation": { "artifactLocation": artifact(&failed.unit) } }],
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "echo-sr",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": { ROOT: { "uri": format!("{}/", file_uri(&root.to_string_lossy())) } },
            "invocations": [{
                "executionSuccessful": failed.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    })
}

fn rule(page: &pages::Page, docs: Option<&str>) -> Value {
    let mut rule = json!({
        "id": page.number,
        "name": page.code,
        "shortDescription": { "text": page.message },
        "fullDescription": { "text": page.section("What it means").unwrap_or_else(|| page.message.to_owned()) },
        "help": { "text": page.section("What to do").unwrap_or_default(), "markdown": page.text },
        "defaultConfiguration": { "level": if page.number < "ESR200" { "note" } else { "warning" } },
    });
    if let Some(docs) = docs {
        rule["helpUri"] = json!(format!("{}/{}.md", docs.trim_end_matches('/'), page.number));
    }
    rule
}

fn results(finding: &Finding) -> Vec<Value> {
    let pair = &finding.pair;
    if pair.outcome != Outcome::Declined {
        return vec![accepted(finding)];
    }
    pair.reasons.iter().enumerate().map(|(index, reason)| declined(finding, index, reason)).collect()
}

fn names(pair: &PairReport) -> String {
    format!("host buffer `{}` and device buffer `{}`", pair.host.name, pair.device.name)
}

fn accepted(finding: &Finding) -> Value {
    let pair = &finding.pair;
    let mut result = json!({
        "ruleId": pair.number().unwrap_or("ESR103"),
        "kind": "informational",
        "level": "none",
        "message": { "text": format!("The {} can be one buffer.", names(pair)) },
        "locations": [location(&pair.host.site, finding, None)],
        "relatedLocations": related(finding),
        "partialFingerprints": { "echoPair/v1": Fingerprint::new(finding, "mergeable").line() },
    });
    if finding.new.is_some() {
        result["baselineState"] = json!("unchanged");
    }
    result
}

fn declined(finding: &Finding, index: usize, reason: &ReasonReport) -> Value {
    let pair = &finding.pair;
    let at = if reason.at.line == 0 { &pair.host.site } else { &reason.at };
    let mut result = json!({
        "ruleId": reason.number,
        "kind": "fail",
        "level": "warning",
        "message": { "text": format!("The {} stay two: {}. What would help: {}.", names(pair), reason.message, reason.help) },
        "locations": [location(at, finding, None)],
        "relatedLocations": related(finding),
        "partialFingerprints": { "echoPair/v1": Fingerprint::new(finding, &reason.code).line() },
    });
    if !reason.witness.is_empty() {
        let steps: Vec<Value> = reason
            .witness
            .iter()
            .map(|step| json!({ "location": location(&step.site, finding, Some(&step.text)) }))
            .collect();
        result["codeFlows"] = json!([{ "threadFlows": [{ "locations": steps }] }]);
    }
    if let Some(new) = &finding.new {
        let new = new.get(index).copied().unwrap_or(true);
        result["baselineState"] = json!(if new { "new" } else { "unchanged" });
    }
    result
}

/// The two allocations and the copies.
fn related(finding: &Finding) -> Vec<Value> {
    let pair = &finding.pair;
    let mut places = vec![
        (&pair.host.site, format!("host buffer `{}` is allocated here", pair.host.name)),
        (&pair.device.site, format!("device buffer `{}` is allocated here", pair.device.name)),
    ];
    places.extend(pair.copies.iter().map(|copy| (copy, "copied here".to_owned())));
    places.retain(|(place, _)| place.line != 0);
    places
        .iter()
        .enumerate()
        .map(|(id, (place, text))| {
            let mut location = location(place, finding, Some(text));
            location["id"] = json!(id);
            location
        })
        .collect()
}

/// A place; without debug information the function in its unit.
fn location(place: &Place, finding: &Finding, text: Option<&str>) -> Value {
    let mut location = if place.line == 0 {
        json!({ "physicalLocation": { "artifactLocation": artifact(&finding.unit) } })
    } else {
        let mut region = json!({ "startLine": place.line });
        if place.column != 0 {
            region["startColumn"] = json!(place.column);
        }
        json!({ "physicalLocation": { "artifactLocation": artifact(&place.file), "region": region } })
    };
    if let Some(function) = finding.functions.first() {
        location["logicalLocations"] = json!([{ "fullyQualifiedName": demangled(function), "kind": "function" }]);
    }
    if let Some(text) = text {
        location["message"] = json!({ "text": text });
    }
    location
}

fn artifact(path: &str) -> Value {
    if path.starts_with('/') {
        json!({ "uri": file_uri(path) })
    } else {
        json!({ "uri": encoded(path), "uriBaseId": ROOT })
    }
}

fn file_uri(path: &str) -> String {
    format!("file://{}", encoded(path))
}

/// A path in a URI: everything but what RFC 3986 lets stand in one is percent-encoded.
fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/+@$&,=".contains(&byte);
    path.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(pair: PairReport, new: Option<Vec<bool>>) -> Finding {
        Finding { functions: vec!["_Z1fv".to_owned()], pair, unit: "dir/a b.cu".to_owned(), new }
    }

    fn two() -> Value {
        let declined = finding(echo_report::samples::declined(), Some(vec![true, false]));
        let mut mergeable = echo_report::samples::merged();
        mergeable.outcome = Outcome::Mergeable;
        let failed = Failed { unit: "b.cu".to_owned(), reason: "error: x".to_owned() };
        log(&[declined, finding(mergeable, None)], &[failed], Path::new("/p"), Some("https://example.org/remarks/"))
    }

    /// The official schema, which comes with a dependency of this test.
    fn schema() -> Value {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["metadata", "--format-version=1", "--offline", "--manifest-path"]);
        let output = cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).output().expect("cargo runs");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
        let packages = metadata["packages"].as_array().expect("packages");
        let package = packages.iter().find(|package| package["name"] == "serde-sarif").expect("serde-sarif is locked");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let path = manifest.with_file_name("src").join("schema.json");
        let schema: Value = serde_json::from_slice(&std::fs::read(path).expect("it has the schema")).expect("JSON");
        assert!(schema["$id"].as_str().is_some_and(|id| id.ends_with("sarif-schema-2.1.0.json")));
        schema
    }

    #[test]
    fn the_log_is_valid_by_the_official_schema() {
        const SCHEMA: &str = "mem:///sarif-schema-2.1.0.json";
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.enable_format_assertions();
        let mut schema = schema();
        schema.as_object_mut().expect("an object").remove("$id");
        compiler.add_resource(SCHEMA, schema).expect("JSON");
        let index = compiler.compile(SCHEMA, &mut schemas).expect("a valid schema");
        for log in [two(), log(&[], &[], Path::new("/"), None)] {
            if let Err(error) = schemas.validate(&log, index) {
                panic!("{error:#}");
            }
            serde_json::from_value::<serde_sarif::sarif::Sarif>(log).expect("serde-sarif reads it");
        }
        // The validator is one: a result without a message is refused.
        let mut wrong = two();
        wrong["runs"][0]["results"][0].as_object_mut().expect("an object").remove("message");
        assert!(schemas.validate(&wrong, index).is_err());
    }

    #[test]
    fn each_broken_condition_is_a_result_with_its_path() {
        let log = two();
        let results = log["runs"][0]["results"].as_array().expect("results");
        assert_eq!(results.len(), 3);
        assert_eq!(results[0]["ruleId"], "ESR210");
        assert_eq!(results[0]["baselineState"], "new");
        assert_eq!(results[1]["baselineState"], "unchanged");
        let steps = &results[0]["codeFlows"][0]["threadFlows"][0]["locations"];
        assert_eq!(steps[1]["location"]["message"]["text"], "kernel reads `d`");
        assert_eq!(steps[1]["location"]["physicalLocation"]["region"]["startLine"], 9);
        assert_eq!(results[2]["ruleId"], "ESR103");
        assert_eq!(results[2]["kind"], "informational");
    }

    #[test]
    fn every_result_has_a_rule_with_help() {
        let log = two();
        let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
        for result in log["runs"][0]["results"].as_array().expect("results") {
            let rule = rules.iter().find(|rule| rule["id"] == result["ruleId"]).expect("its rule");
            assert!(rule["help"]["markdown"].as_str().is_some_and(|text| text.len() > 100));
            assert!(rule["helpUri"].as_str().is_some_and(|uri| uri.starts_with("https://example.org/remarks/ESR")));
        }
    }

    #[test]
    fn paths_are_uris() {
        assert_eq!(artifact("dir/a b.cu")["uri"], "dir/a%20b.cu");
        assert_eq!(artifact("/x/ü.cu")["uri"], "file:///x/%C3%BC.cu");
    }

    #[test]
    fn a_unit_that_failed_is_told_in_the_invocation() {
        let invocation = &two()["runs"][0]["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], false);
        assert_eq!(invocation["toolExecutionNotifications"][0]["message"]["text"], "error: x");
    }
}
