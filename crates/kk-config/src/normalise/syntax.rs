//! Checks the syntax of names and paths that several sections use, with a sentence that describes each.

use crate::Secret;
use crate::findings::{At, Findings};
use std::path::Path;

pub(super) const DNS_LABEL: &str =
    "use small letters, digits and `-`, at most 63, beginning and ending with a letter or digit";
pub(super) const DNS_NAME: &str =
    "use small letters, digits, `-` and `.`, each part beginning and ending with a letter or digit";
pub(super) const ABSOLUTE_PATH: &str = "give an absolute path without `..`, below the root directory";

/// Directories with other contents (Filesystem Hierarchy Standard; Kubernetes' own): a data directory gets another owner and
/// mode, and is emptied when the cluster is deleted.
const SHARED_DIRECTORIES: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/etc/kubernetes",
    "/home",
    "/lib",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log",
    "/var/run",
    "/var/spool",
    "/var/tmp",
];

/// RFC 1123 label in lower case, as Kubernetes requires for names.
pub(super) fn is_dns_label(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first().copied())
        && edge(bytes.last().copied())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// RFC 1123 subdomain in lower case.
pub(super) fn is_dns_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}

/// A node label's or taint's value, or a key's part after the slash: at most 63 of `[A-Za-z0-9-_.]` with a
/// letter or digit at both ends (apimachinery's `IsValidLabelValue`).
pub(super) fn is_label_value(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first().copied())
        && edge(bytes.last().copied())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

/// `name` or `dns.name/name` (apimachinery's `IsQualifiedName`).
pub(super) fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_dns_name) && !name.is_empty() && is_label_value(name)
}

/// A path that kk may create and remove on a host: absolute, not the root, without special characters.
pub(super) fn is_absolute_path(text: &str) -> bool {
    let mut parts = text.split('/').skip(1).filter(|part| !part.is_empty()).peekable();
    text.starts_with('/')
        && parts.peek().is_some()
        && parts.all(|part| part != "..")
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Whether a text is a single token in a configuration file.
pub(super) fn is_one_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A quantity of Kubernetes that is above zero: a decimal number with a suffix such as `Mi`, `G`, `m` or `e3`.
pub(super) fn is_positive_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 16] =
        ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|digits| digits.parse::<i8>().is_ok());
    number.parse::<f64>().is_ok_and(|number| number > 0.0) && (exponent || SUFFIXES.contains(&suffix))
}

/// A quantity of Kubernetes: zero or above.
pub(super) fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    is_positive_quantity(text)
        || (digits.parse::<f64>() == Ok(0.0) && is_positive_quantity(&text.replace('0', "1")))
}

/// A duration in the format of Go's `time.ParseDuration`: `1h30m`, `1.5s`, `300ms`, `0`.
pub(super) fn is_go_duration(text: &str) -> bool {
    // Go accepts the micro sign (U+00B5) and the Greek letter (U+03BC).
    const UNITS: [&str; 8] = ["h", "m", "s", "ms", "us", "\u{b5}s", "\u{3bc}s", "ns"];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut parts = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let unit = behind.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(behind.len());
        if number.parse::<f64>().is_err() || !UNITS.contains(&&behind[..unit]) {
            return false;
        }
        rest = &behind[unit..];
        parts += 1;
    }
    parts > 0
}

/// Seconds of a duration in Go's format, in hours, minutes and seconds: `8760h`, `1h30m`. `None` for any other form, and for 0.
pub fn go_duration(text: &str) -> Option<u64> {
    let (mut seconds, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..end].parse().ok()?;
        let unit = match rest[end..].chars().next()? {
            'h' => 3600,
            'm' => 60,
            's' => 1,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[end + 1..];
    }
    (seconds > 0).then_some(seconds)
}

/// Why a text is not `http://…` or `https://…` with a host and without credentials.
pub(super) fn url_problem(text: &str) -> Option<&'static str> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    match host {
        _ if !is_one_word(text) => Some("give one URL, without blanks"),
        None => Some("begin it with https:// or http://"),
        Some("") => Some("a host is missing after `://`"),
        Some(host) if host.contains('@') => Some("a URL may not hold a user name or password"),
        Some(_) => None,
    }
}

/// Compared by components: `/var/` equals `/var`.
fn is_shared_directory(path: &str) -> bool {
    SHARED_DIRECTORIES.iter().any(|directory| Path::new(directory) == Path::new(path))
}

/// A directory for data of a single component.
pub(super) fn is_data_directory(path: &str) -> bool {
    is_absolute_path(path) && !is_shared_directory(path)
}

/// Reports a path that cannot be a directory for data of a single component.
pub(super) fn check_data_directory(path: &str, what: &str, at: At<'_>, out: &mut Findings<'_>) {
    if !is_absolute_path(path) {
        out.error(at, format!("`{path}` cannot be {what}"), ABSOLUTE_PATH);
    } else if is_shared_directory(path) {
        let hint = format!("give a directory for this alone, such as {}/data", path.trim_end_matches('/'));
        out.error(at, format!("`{path}` contains other files, too: it cannot be {what}"), hint);
    }
}

/// Warns about a secret that cannot be masked: in its place, parts of ordinary words would disappear.
pub(super) fn check_secret_length(secret: Option<&Secret>, key: &str, at: At<'_>, out: &mut Findings<'_>) {
    const SHORTEST: usize = 4;
    if let Some(secret) = secret
        && (1..SHORTEST).contains(&secret.expose().trim().chars().count())
    {
        let message = format!("`{key}` has fewer than {SHORTEST} characters, so kk cannot mask it");
        out.warning(at.name(key), message, "messages and logs may show it; choose a longer one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_names() {
        for good in ["a", "node1", "node-1.example", "1.2"] {
            assert!(is_dns_name(good), "{good}");
        }
        for bad in ["", "Node", "a_b", "-a", "a-", "a..b", ".a", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_dns_name(bad), "{bad}");
        }
    }

    #[test]
    fn label_keys() {
        for good in ["app", "node-role.kubernetes.io/edge", "A_b.c"] {
            assert!(is_label_key(good), "{good}");
        }
        for bad in ["", "a/", "/a", "a/b/c", "-a", "a b", "Up.per/a"] {
            assert!(!is_label_key(bad), "{bad}");
        }
    }

    #[test]
    fn paths() {
        assert!(is_data_directory("/var/lib/etcd") && is_data_directory("/data"));
        assert!(
            !is_data_directory("/var/") && !is_data_directory("/usr//local/.") && !is_data_directory("/")
        );
        for good in ["/var/lib/etcd", "/data", "/data/"] {
            assert!(is_absolute_path(good), "{good}");
        }
        for bad in ["", "/", "//", "data", "/data/../etc", "/a b", "/a\n"] {
            assert!(!is_absolute_path(bad), "{bad}");
        }
    }

    #[test]
    fn quantities() {
        for good in ["1", "500Mi", "1.5G", ".5Gi", "100m", "1e3"] {
            assert!(is_positive_quantity(good), "{good}");
        }
        for bad in ["", "0", "Mi", "-1", "1 Gi", "1MB", "1e", "1.2.3", "10%"] {
            assert!(!is_positive_quantity(bad), "{bad}");
        }
    }

    #[test]
    fn durations_of_go() {
        for good in ["0", "0s", "10s", "1h30m", "1.5h", "300ms", "5\u{b5}s", "5\u{3bc}s", "-1s", "1m0.5s"] {
            assert!(is_go_duration(good), "{good}");
        }
        for bad in ["", "10", "s", "1d", "1 m", "10 s", "1h 2m", "-", "1.2.3s", "five"] {
            assert!(!is_go_duration(bad), "{bad}");
        }
    }

    #[test]
    fn quantities_may_be_zero() {
        for good in ["0", "0.0", "0Mi", "100m"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "0MB", "-1", "1 Gi", "x", "."] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(go_duration("8760h"), Some(31_536_000));
        assert_eq!(go_duration("1h30m5s"), Some(5405));
        for bad in ["", "0h", "1", "h", "1d", "1.5h", "-1h", "1h 2m", "99999999999999999999h"] {
            assert_eq!(go_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn urls() {
        assert_eq!(url_problem("https://mirror.example:5000/a"), None);
        for bad in ["mirror.example", "ftp://a", "https://", "https://u:p@a", "https://a b"] {
            assert!(url_problem(bad).is_some(), "{bad}");
        }
    }
}
