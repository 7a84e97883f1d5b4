//! Exit codes, on which scripts that call `kk` can rely. Listed in `kk --help` and in docs/cli.md.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// The command succeeded.
    Ok = 0,
    /// Something failed that has no code of its own, most often a task on a host.
    Failed = 1,
    /// The command line is wrong, or kk needs a confirmation and has no terminal to ask for it. clap uses the same number.
    Usage = 2,
    /// The configuration cannot be used.
    Config = 3,
    /// A needed host is unreachable, refuses the log-in, or gives no root rights. Nothing was changed.
    Connection = 4,
    /// A host does not meet a requirement. Nothing was changed.
    Precheck = 5,
    /// Hosts did not answer. All work on the other hosts succeeded.
    Partly = 6,
    /// Ctrl-C, SIGTERM or SIGHUP. The number is the shell's (128 + SIGINT).
    Cancelled = 130,
}

impl ExitStatus {
    /// Every status, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::Ok,
        Self::Failed,
        Self::Usage,
        Self::Config,
        Self::Connection,
        Self::Precheck,
        Self::Partly,
        Self::Cancelled,
    ];

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// A short description of the code.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "success",
            Self::Failed => "a task failed",
            Self::Usage => "the command line is wrong",
            Self::Config => "the configuration is wrong",
            Self::Connection => {
                "a required host is unreachable or does not grant root rights; nothing was changed"
            }
            Self::Precheck => "a host does not meet a requirement; nothing was changed",
            Self::Partly => "a host did not answer and was not changed; all other hosts succeeded",
            Self::Cancelled => "cancelled by Ctrl-C, SIGTERM or a closed terminal",
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}
