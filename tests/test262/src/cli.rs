//! The steps of the binary and the test target: load, choose, run, compare, report.

use crate::expectations::Expectations;
use crate::page;
use crate::pool::{self, PoolLimits};
use crate::protocol::Verdict;
use crate::report;
use crate::section::{CVM, SECTIONS, SuiteSection};
use crate::suite::{Suite, TestFile};
use anyhow::{Context as _, Result, bail};
use std::path::Path;

/// The environment variable with the path of the checkout.
pub const SUITE_VARIABLE: &str = "VM_SYSTEM_TEST262";

/// The options of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuiteOptions {
    /// Names of the sections; none: all.
    pub sections: Vec<&'static str>,
    /// Runs only paths that contain this.
    pub filter: Option<String>,
    /// Skips paths that contain this.
    pub exclude: Option<String>,
    /// Runs only each n-th test.
    pub sample: Option<usize>,
    /// Writes the expectations file and the page of failures from this run.
    pub update: bool,
    /// Prints folders with failures.
    pub by_folder: bool,
    /// Prints each failing test with its message.
    pub verbose: bool,
    /// Children at a time.
    pub jobs: Option<usize>,
}

/// The usage text.
pub const USAGE: &str =
    "usage: vm-system-test262 [--section NAME]… [--filter TEXT] [--exclude TEXT] [--sample N] [--jobs N] [--summary-by-folder] [--verbose] \
[--update-expectations]
A section is cvm, cvm-intl402, cvm-modules, quickjs, quickjs-modules, quickjs-typed-arrays or quickjs-intl402; without one all are run.
The suite's path is read from VM_SYSTEM_TEST262.";

impl SuiteOptions {
    /// Reads the arguments after the program's name.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<SuiteOptions> {
        let mut options = SuiteOptions::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value\n{USAGE}"));
            match argument.as_str() {
                "--section" => {
                    let name = value()?;
                    let section = SuiteSection::named(&name);
                    options
                        .sections
                        .push(section.with_context(|| format!("no section {name}\n{USAGE}"))?.name);
                }
                "--filter" => options.filter = Some(value()?),
                "--exclude" => options.exclude = Some(value()?),
                "--sample" => options.sample = Some(value()?.parse().context("--sample needs a number")?),
                "--jobs" => options.jobs = Some(value()?.parse().context("--jobs needs a number")?),
                "--update-expectations" => options.update = true,
                "--summary-by-folder" => options.by_folder = true,
                "--verbose" => options.verbose = true,
                _ => bail!("unknown argument {argument}\n{USAGE}"),
            }
        }
        if options.update && options.is_partial() {
            bail!("--update-expectations needs a full run, without --filter, --exclude and --sample");
        }
        Ok(options)
    }

    fn is_partial(&self) -> bool {
        self.filter.is_some() || self.exclude.is_some() || self.sample.is_some()
    }
}

/// Runs the chosen tests with `child` as child process; true if all results are as expected.
pub fn run(root: &Path, child: &Path, options: &SuiteOptions) -> Result<bool> {
    let suite = Suite::load(root)?;
    let mut as_expected = true;
    let (mut run, chosen) =
        (0, |section: &SuiteSection| options.sections.is_empty() || options.sections.contains(&section.name));
    for section in SECTIONS.iter().filter(|section| chosen(section)) {
        let places = places(&suite, section, options);
        if places.is_empty() {
            continue;
        }
        run += places.len();
        as_expected &= run_section(&suite, section, &places, child, options)?;
    }
    if run == 0 {
        bail!("no test fits below {}", root.display());
    }
    Ok(as_expected)
}

/// The indices of the tests of a section that are to be run.
fn places(suite: &Suite, section: &SuiteSection, options: &SuiteOptions) -> Vec<usize> {
    let fits = |path: &str| {
        options.filter.as_ref().is_none_or(|text| path.contains(text))
            && !options.exclude.as_ref().is_some_and(|text| path.contains(text))
    };
    let chosen =
        suite.tests.iter().enumerate().filter(|(_, test)| section.contains(test) && fits(&test.path));
    let step = options.sample.unwrap_or(1).max(1);
    chosen.step_by(step).map(|(place, _)| place).collect()
}

fn run_section(
    suite: &Suite,
    section: &SuiteSection,
    places: &[usize],
    child: &Path,
    options: &SuiteOptions,
) -> Result<bool> {
    let jobs = options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let limits = PoolLimits { jobs, test_ms: 60_000, child: child.to_owned(), engine: section.engine };
    let verdicts = pool::run(suite, places, &limits)?;
    println!("section {}", section.name);
    if options.verbose {
        for (place, verdict) in places.iter().zip(&verdicts) {
            if let Verdict::Fail(message) = verdict {
                println!("FAIL {}: {message}", suite.tests[*place].path);
            }
        }
    }
    if options.by_folder {
        println!("{}", report::by_folder(suite, places, &verdicts));
        println!("{}", report::by_cause(suite, places, &verdicts, 60));
    }
    let has_page = section.name == CVM.name;
    if has_page {
        println!("{}", report::totals(suite, places, &verdicts, options.is_partial()));
    } else {
        println!("{}\n", report::total(&verdicts));
    }
    let all: Vec<&TestFile> = suite.tests.iter().filter(|test| section.contains(test)).collect();
    if options.update {
        let failed = |(place, verdict): (&usize, &Verdict)| {
            matches!(verdict, Verdict::Fail(_)).then(|| suite.tests[*place].path.clone())
        };
        let now = Expectations::of_failing(places.iter().zip(&verdicts).filter_map(failed));
        std::fs::write(section.expectations(), now.to_text(&all)).context("cannot write the expectations")?;
        if has_page {
            let text = page::page(suite, places, &verdicts);
            std::fs::write(page::file(), text).context("cannot write the page of failures")?;
        }
        return Ok(true);
    }
    let text = std::fs::read_to_string(section.expectations()).context("cannot read the expectations")?;
    let as_expected = compare(suite, &Expectations::parse(&text, &all), places, &verdicts);
    let committed = std::fs::read_to_string(page::file()).unwrap_or_default();
    if as_expected && has_page && !options.is_partial() && committed != page::page(suite, places, &verdicts) {
        println!("{} is out of date: run with --update-expectations", page::file().display());
        return Ok(false);
    }
    Ok(as_expected)
}

fn compare(suite: &Suite, expected: &Expectations, places: &[usize], verdicts: &[Verdict]) -> bool {
    let results = places.iter().zip(verdicts);
    let results =
        results.map(|(place, verdict)| (suite.tests[*place].path.as_str(), *verdict == Verdict::Pass));
    let difference = expected.compare(results);
    for (title, paths) in
        [("regression", &difference.regressions), ("unexpected pass", &difference.unexpected_passes)]
    {
        for path in paths.iter().take(50) {
            println!("{title}: {path}");
        }
        if !paths.is_empty() {
            println!("{}: {}", paths.len(), title);
        }
    }
    difference.regressions.is_empty() && difference.unexpected_passes.is_empty()
}

#[cfg(test)]
mod tests {
    use super::SuiteOptions;

    #[test]
    fn arguments_are_read_and_partial_runs_cannot_rewrite_expectations() {
        let parse = |line: &str| SuiteOptions::parse(line.split_whitespace().map(str::to_owned));
        let expected =
            SuiteOptions { filter: Some("Map".to_owned()), sample: Some(20), ..SuiteOptions::default() };
        assert_eq!(parse("--filter Map --sample 20").ok(), Some(expected));
        assert_eq!(parse("--section cvm").map(|options| options.sections).ok(), Some(vec!["cvm"]));
        assert!(parse("--section no").is_err());
        assert!(parse("--filter").is_err() && parse("--what").is_err() && parse("--sample x").is_err());
        assert!(parse("--update-expectations --sample 2").is_err());
    }
}
