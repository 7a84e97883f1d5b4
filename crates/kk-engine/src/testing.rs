//! Helpers for tests of pipelines: let a [`kk_connector::FakeHost`] answer the engine's round trips.
//!
//! ```
//! use kk_connector::{FakeHost, Output};
//! use kk_engine::testing;
//!
//! let host = FakeHost::new("node1").on_fn(testing::is_batch, |command| {
//!     Ok(testing::answer(command, |script| Output {
//!         code: i32::from(script.contains("kubeadm init")),
//!         ..Output::default()
//!     }))
//! });
//! ```

use std::fmt::Write as _;

use kk_connector::{Command, Output};

/// Whether a command is a batch of operations.
pub fn is_batch(command: &Command) -> bool {
    nonce(command).is_some()
}

/// The shell text of each operation of a batch, without the text that the engine puts before it.
pub fn scripts(command: &Command) -> Vec<String> {
    let numbered = (0..).map_while(|number| {
        let name = format!("{number}.sh");
        command.files.iter().find(|file| file.name == name)
    });
    let text = numbered.map(|file| String::from_utf8_lossy(&file.content).into_owned());
    text.map(|text| text.split_once('\n').map_or(text.clone(), |(_, rest)| rest.to_owned())).collect()
}

/// The host's output if `answer` determines how each operation ends. The first failed operation is the last one.
pub fn answer(command: &Command, answer: impl Fn(&str) -> Output) -> Output {
    let nonce = nonce(command).unwrap_or_default();
    let mut stdout = format!("\n@{nonce} dir /run/kk\n");
    for (number, script) in scripts(command).iter().enumerate() {
        let Output { code, stdout: printed, stderr, .. } = answer(script);
        let _ = write!(stdout, "\n@{nonce} start {number}\n{stderr}");
        if code == 0 && command.script.contains(&format!("kk_operation {number} out ")) {
            let _ = write!(stdout, "\n@{nonce} out {number}\n{printed}");
        }
        let _ = write!(stdout, "\n@{nonce} end {number} {code}\n");
        if code != 0 {
            break;
        }
    }
    Output { stdout, ..Output::default() }
}

fn nonce(command: &Command) -> Option<&str> {
    command.script.split_once("kk_say() { printf '\\n@")?.1.split(' ').next()
}
