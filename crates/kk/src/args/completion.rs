//! Options of `kk completion`.

use clap::{Args, ValueEnum};

/// Options of `kk completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk completion bash > /etc/bash_completion.d/kk
  kk completion zsh > \"${fpath[1]}/_kk\"
  kk completion fish > ~/.config/fish/completions/kk.fish")]
pub struct Completion {
    /// The shell
    #[arg(value_name = "SHELL", ignore_case = true, required_unless_present = "shell_type")]
    pub shell: Option<ShellName>,

    /// The shell, in the form that KubeKey accepts
    #[arg(short = 't', long = "type", value_name = "SHELL", ignore_case = true, conflicts_with = "shell")]
    pub shell_type: Option<ShellName>,
}

/// Shells for which a completion script can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say all")]
pub enum ShellName {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}
