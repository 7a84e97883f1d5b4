//! Typed questions of the probe: the shell snippet for a host and the parser of its output, in one value.
//!
//! A missing answer never counts as "no". [`Facts::answer`] distinguishes three cases: the host was not asked, it gave no answer
//! (too slow, failed, not understood), or it answered.

use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

use crate::{Facts, ProbeSpec};

/// A shell snippet, the parser of its output, and its time limit.
///
/// A snippet ends with 0 if it could determine the answer, whatever the answer is: `[ -d /x ] && echo yes || echo no`.
#[derive(Clone, Debug)]
pub struct Question<T> {
    name: Cow<'static, str>,
    snippet: Cow<'static, str>,
    parse: fn(&str) -> Option<T>,
    limit: Duration,
    marks_its_end: bool,
}

impl<T> Question<T> {
    /// The default time limit of a snippet. In the first minutes after a boot, a slow host needs longer for all questions
    /// together than for a single question: on an emulated machine 20 seconds were not enough.
    const LIMIT: Duration = Duration::from_mins(1);

    /// A question with a constant snippet. `parse` gets exactly the snippet's output; `None` means that it is not a complete
    /// answer. The time limit is one minute.
    pub const fn new(name: &'static str, snippet: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self {
            name: Cow::Borrowed(name),
            snippet: Cow::Borrowed(snippet),
            parse,
            limit: Self::LIMIT,
            marks_its_end: false,
        }
    }

    /// A question whose name and snippet are created at run time: add the snippet with [`Question::with_snippet`].
    pub fn named(name: String, parse: fn(&str) -> Option<T>) -> Self {
        Self { name: Cow::Owned(name), ..Self::new("", "", parse) }
    }

    /// The same question with a snippet created at run time, for this host or cluster. Name and parser stay the same, so that the
    /// constant can read the answer.
    #[must_use]
    pub fn with_snippet(mut self, snippet: impl Into<Cow<'static, str>>) -> Self {
        self.snippet = snippet.into();
        self
    }

    /// Sets the time limit of the snippet, in whole seconds.
    #[must_use]
    pub const fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Declares that the parser recognises a truncated answer. Then the output of a snippet that failed or ran out of time is
    /// parsed, too; otherwise it counts as no answer.
    #[must_use]
    pub const fn marks_its_end(mut self) -> Self {
        self.marks_its_end = true;
        self
    }

    /// Its name, unique among the questions of a host.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Parser for one word or text: the whole output, trimmed.
pub fn text(printed: &str) -> Option<String> {
    Some(printed.trim().to_owned())
}

/// Parser for a list: the lines that are not empty.
pub fn lines(printed: &str) -> Option<Vec<String>> {
    Some(printed.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Parser for `yes` and `no`; anything else is no answer.
pub fn yes_or_no(printed: &str) -> Option<bool> {
    match printed.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// The answer to a question, or the reason why it is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The host was not asked.
    NotAsked,
    /// The host was asked and gave no answer.
    Unanswered(Unanswered),
    /// The answer.
    Answered(T),
}

impl<T> Answer<T> {
    /// The answer, if there is one. Only for callers that treat "no answer" and "not asked" alike.
    pub fn answered(self) -> Option<T> {
        match self {
            Self::Answered(answer) => Some(answer),
            Self::NotAsked | Self::Unanswered(_) => None,
        }
    }

    /// Why there is no answer although the host was asked.
    pub fn unanswered(&self) -> Option<&Unanswered> {
        match self {
            Self::Unanswered(why) => Some(why),
            Self::NotAsked | Self::Answered(_) => None,
        }
    }
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It exceeded its time limit.
    TimedOut {
        /// The limit in seconds.
        seconds: u64,
    },
    /// The snippet failed.
    Failed {
        /// Its exit code.
        code: i32,
        /// Its last line of standard error.
        stderr: String,
    },
    /// The parser did not understand the output.
    NotUnderstood,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { seconds } => write!(f, "no answer within {seconds} s"),
            Self::Failed { code, stderr } if stderr.is_empty() => write!(f, "it ended with code {code}"),
            Self::Failed { stderr, .. } => f.write_str(stderr),
            Self::NotUnderstood => f.write_str("its answer cannot be parsed"),
        }
    }
}

/// A question without its type, as stored in [`ProbeSpec`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Shell text.
    pub snippet: String,
    /// The time limit in seconds.
    pub seconds: u64,
}

/// The reply to a question, before it is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The whole standard output.
    pub stdout: String,
    /// Its exit code.
    pub code: i32,
    /// Its last line of standard error, if it failed.
    pub stderr: String,
    /// The time limit in seconds that it exceeded.
    pub timed_out: Option<u64>,
}

/// Replies by the question's name.
pub type Replies = BTreeMap<String, Reply>;

impl ProbeSpec {
    /// Adds a question. An existing question with the same name is replaced.
    pub fn ask<T>(&mut self, question: &Question<T>) {
        let asked = Asked { snippet: question.snippet.to_string(), seconds: question.limit.as_secs().max(1) };
        self.questions.insert(question.name.to_string(), asked);
    }
}

impl Facts {
    /// The answer to a question, or the reason why it is missing.
    pub fn answer<T>(&self, question: &Question<T>) -> Answer<T> {
        let Some(reply) = self.replies.get(&*question.name) else { return Answer::NotAsked };
        let whole = reply.timed_out.is_none() && reply.code == 0;
        if whole || question.marks_its_end {
            match (question.parse)(&reply.stdout) {
                Some(answer) => return Answer::Answered(answer),
                None if whole => return Answer::Unanswered(Unanswered::NotUnderstood),
                None => {}
            }
        }
        Answer::Unanswered(match reply.timed_out {
            Some(seconds) => Unanswered::TimedOut { seconds },
            None => Unanswered::Failed { code: reply.code, stderr: reply.stderr.clone() },
        })
    }

    /// Sets a host's output for a question, for tests of code that reads the answer.
    pub fn reply<T>(&mut self, question: &Question<T>, printed: impl Into<String>) {
        let reply = Reply { stdout: printed.into(), ..Reply::default() };
        self.replies.insert(question.name.to_string(), reply);
    }

    /// Records a question as timed out, for tests of code that reads the answer.
    pub fn time_out<T>(&mut self, question: &Question<T>) {
        let timed_out = Some(question.limit.as_secs());
        self.replies.insert(question.name.to_string(), Reply { timed_out, ..Reply::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: Question<u32> = Question::new("number", "echo 7", |printed| printed.trim().parse().ok());

    fn read(question: &Question<u32>, reply: Reply) -> Answer<u32> {
        Facts { replies: [("number".to_owned(), reply)].into(), ..Facts::default() }.answer(question)
    }

    fn reply(stdout: &str, code: i32, timed_out: Option<u64>) -> Reply {
        Reply { stdout: stdout.into(), code, timed_out, stderr: "refused".into() }
    }

    #[test]
    fn no_answer_is_neither_an_answer_nor_not_asked() {
        assert_eq!(Facts::default().answer(&NUMBER), Answer::NotAsked);
        let failed = Unanswered::Failed { code: 1, stderr: "refused".into() };
        for (found, expected) in [
            (reply("7\n", 0, None), Answer::Answered(7)),
            (reply("seven", 0, None), Answer::Unanswered(Unanswered::NotUnderstood)),
            (reply("7\n", 1, None), Answer::Unanswered(failed)),
            (reply("7\n", 124, Some(20)), Answer::Unanswered(Unanswered::TimedOut { seconds: 20 })),
        ] {
            assert_eq!(read(&NUMBER, found), expected);
        }
    }

    #[test]
    fn what_was_printed_before_the_time_was_over_counts_only_when_its_end_is_marked() {
        let question: Question<u32> = Question::new("number", "", |printed| {
            printed.strip_suffix("end\n").and_then(|number| number.trim().parse().ok())
        })
        .marks_its_end();
        let late = Answer::Unanswered(Unanswered::TimedOut { seconds: 20 });
        assert_eq!(read(&question, reply("7\nend\n", 124, Some(20))), Answer::Answered(7));
        assert_eq!(read(&question, reply("7\n", 124, Some(20))), late);
        assert_eq!(read(&question, reply("7\nend\n", 1, None)), Answer::Answered(7));
    }
}
