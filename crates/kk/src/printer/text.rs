//! Formats small texts: colours, numbers with units, lists of hosts.

use console::Style;

/// Colours text, or leaves it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Whether text is coloured.
    pub colour: bool,
}

impl Paint {
    /// Text for a file or a pipe.
    pub const PLAIN: Self = Self { colour: false };

    fn put(self, style: Style, text: &str) -> String {
        style.force_styling(self.colour).apply_to(text).to_string()
    }

    /// Errors.
    pub fn red(self, text: &str) -> String {
        self.put(Style::new().red().bold(), text)
    }

    /// Success.
    pub fn green(self, text: &str) -> String {
        self.put(Style::new().green(), text)
    }

    /// Warnings.
    pub fn yellow(self, text: &str) -> String {
        self.put(Style::new().yellow(), text)
    }

    /// Hints and adaptations.
    pub fn cyan(self, text: &str) -> String {
        self.put(Style::new().cyan(), text)
    }

    /// Headings and names.
    pub fn bold(self, text: &str) -> String {
        self.put(Style::new().bold(), text)
    }

    /// Text for reference only.
    pub fn dim(self, text: &str) -> String {
        self.put(Style::new().dim(), text)
    }
}

/// `0.4s`, `12.3s`, `2m05s`, `1h02m`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}.{}s", ms % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// `17 B`, `3.4 MiB`, `1.2 GiB`.
pub fn bytes(number: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(power, _)| number >> power > 0) {
        None => format!("{number} B"),
        Some((power, unit)) => {
            let tenths = (u128::from(number) * 10) >> power;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// `1 host`, `2 hosts`.
pub fn count(number: usize, singular: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {singular}{plural}")
}

/// `node1, node2`; `node1, node2, node3 and 4 more` when there are more than `most`.
pub fn names<S: AsRef<str>>(all: &[S], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    match all.len().saturating_sub(most) {
        0 => shown.join(", "),
        rest => format!("{} and {rest} more", shown.join(", ")),
    }
}

/// Adapts a title for the middle of a sentence: "Start etcd" becomes "start etcd", "CoreDNS …" stays unchanged.
pub fn in_sentence(title: &str) -> String {
    let mut letters = title.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second))
            if first.is_uppercase() && second.is_lowercase() && !title_is_name(title) =>
        {
            first.to_lowercase().chain(title.chars().skip(1)).collect()
        }
        _ => title.to_owned(),
    }
}

/// A first word with a capital inside (`CoreDNS`, `KubeKey`) is a name.
fn title_is_name(title: &str) -> bool {
    title.split_whitespace().next().is_some_and(|word| word.chars().skip(1).any(char::is_uppercase))
}

/// Groups items that are equal except for their host: the first item of each kind with all its hosts, in order.
pub fn fold<T>(
    items: &[T],
    host: impl Fn(&T) -> String,
    same: impl Fn(&T, &T) -> bool,
) -> Vec<(&T, Vec<String>)> {
    let mut groups: Vec<(&T, Vec<String>)> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|(first, _)| same(first, item)) {
            Some((_, hosts)) => hosts.push(host(item)),
            None => groups.push((item, vec![host(item)])),
        }
    }
    groups
}

/// Indents each line of a text.
pub fn indent(text: &str, by: usize) -> String {
    let margin = " ".repeat(by);
    text.lines().map(|line| format!("{margin}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_unit_that_fits() {
        let cases = [(0, "0.0s"), (399, "0.3s"), (59_999, "59.9s"), (60_000, "1m00s"), (125_400, "2m05s")];
        for (ms, text) in cases {
            assert_eq!(duration(ms), text);
        }
        assert_eq!(duration(3_725_000), "1h02m");
    }

    #[test]
    fn sizes_use_the_unit_that_fits() {
        let cases =
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (1 << 40, "1024.0 GiB")];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        assert_eq!(names(&["a"], 2), "a");
        assert_eq!(names(&["a", "b"], 2), "a, b");
        assert_eq!(names(&["a", "b", "c", "d"], 2), "a, b and 2 more");
    }

    #[test]
    fn titles_lose_their_capital_unless_it_is_a_name() {
        let cases = [("Start etcd", "start etcd"), ("CoreDNS answers", "CoreDNS answers"), ("", "")];
        for (title, text) in cases {
            assert_eq!(in_sentence(title), text);
        }
    }
}
