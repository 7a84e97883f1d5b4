//! `.helmignore`: files of a chart's directory that are not packed. The rules are helm's own (pkg/ignore), so that the packed
//! chart has the same content as from `helm package`.

use glob::{MatchOptions, Pattern};

/// `*` and `?` match within a path component, as in Go's `filepath.Match`.
const WITHIN_A_PART: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The rules of a chart.
#[derive(Debug)]
pub(super) struct Ignore(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    /// Whether it is compared with the whole path instead of only the last component.
    whole: bool,
    directories: bool,
    negated: bool,
}

impl Ignore {
    /// Parses the rules of a file, and adds the rule that helm always adds. Errors name the line that is not a rule.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.chain(["templates/.?*"]).map(Rule::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the file or directory at this path below the chart is left out.
    pub(super) fn leaves_out(&self, path: &str, is_directory: bool) -> bool {
        self.0.iter().any(|rule| {
            let fits = rule.matches(path);
            if rule.negated {
                // As in helm: everything that a negated rule does not name is left out.
                !fits || rule.directories && !is_directory
            } else {
                fits && (!rule.directories || is_directory)
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> Result<Self, String> {
        let wrong = || format!("its .helmignore has the line `{}`, which is not a rule", line.escape_debug());
        let (negated, rule) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let (directories, rule) = rule.strip_suffix('/').map_or((false, rule), |rest| (true, rest));
        let whole = rule.contains('/');
        if rule.contains("**") {
            return Err(wrong());
        }
        let pattern = Pattern::new(rule.trim_start_matches('/')).map_err(|_| wrong())?;
        Ok(Self { pattern, whole, directories, negated })
    }

    fn matches(&self, path: &str) -> bool {
        let text = if self.whole { path } else { path.rsplit('/').next().unwrap_or(path) };
        self.pattern.matches_with(text, WITHIN_A_PART)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_leave_out_what_helm_leaves_out() {
        let rules = Ignore::parse("# editors\n*.swp\n.git/\n/docs\nci/*.yaml\nOWNER?\n").unwrap();
        for (path, is_directory, left_out) in [
            ("a.swp", false, true),
            ("templates/b.swp", false, true),
            (".git", true, true),
            (".git", false, false),
            ("docs", true, true),
            ("charts/docs", true, false),
            ("ci/values.yaml", false, true),
            ("ci/deep/values.yaml", false, false),
            ("OWNERS", false, true),
            ("templates/.hidden", false, true),
            ("templates/deployment.yaml", false, false),
            ("Chart.yaml", false, false),
        ] {
            assert_eq!(rules.leaves_out(path, is_directory), left_out, "{path}");
        }
        let only = Ignore::parse("!*.yaml").unwrap();
        assert!(only.leaves_out("README.md", false) && !only.leaves_out("Chart.yaml", false));
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for line in ["a/**/b", "[a"] {
            assert!(Ignore::parse(line).unwrap_err().contains(line), "{line}");
        }
    }
}
