//! The lies as data: what hosts do, and how `kk create cluster` has to end.

use std::time::Duration;

/// Exit codes of `kk` (docs/cli.md).
const FAILED: i32 = 1;
const CONNECTION: i32 = 4;
pub(super) const PARTLY: i32 = 6;

/// No error about a host that talks takes longer.
const PATIENCE: Duration = Duration::from_mins(2);
/// For a host that sends nothing: kk tries again, and the limit of each attempt is the limit of the slowest question.
const SILENCE: Duration = Duration::from_secs(330);

/// How a host lies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    /// Its SSH server runs `liar.sh` with this argument instead of the requested commands.
    Server(&'static str),
    /// Shell text that replaces a program, and shell text that restores it.
    Program { replace: &'static str, restore: &'static str },
}

/// One or more hosts that lie during a create of a healthy cluster.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) lies: &'static [(&'static str, Means)],
    /// Shell text that runs first on the first lying host: the create has work there.
    pub(super) breaks: &'static str,
    pub(super) code: i32,
    /// Texts in the messages of `kk`.
    pub(super) says: &'static [&'static str],
    pub(super) patience: Duration,
    /// The lie is in the kubeconfig, and no kubeconfig is saved.
    pub(super) refuses_kubeconfig: bool,
}

impl crate::cases::Case for Case {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// A lie in the answer to the first script: the host is left out, and the other hosts are repaired.
const fn left_out(
    name: &'static str,
    lies: &'static [(&'static str, Means)],
    says: &'static [&'static str],
) -> Case {
    Case { name, lies, breaks: "", code: PARTLY, says, patience: PATIENCE, refuses_kubeconfig: false }
}

pub(super) const ALL: &[Case] = &[
    left_out("noise", &[("node3", Means::Server("noise"))], &["the host ended the session"]),
    left_out(
        "greeting-without-end",
        &[("node3", Means::Server("greeting-without-end"))],
        &["it prints without end before the script begins"],
    ),
    left_out(
        "answer-without-end",
        &[("node3", Means::Server("answer-without-end"))],
        &["the output of node3 exceeds 33554432 bytes"],
    ),
    left_out(
        "wrong-frames",
        &[("node3", Means::Server("wrong-frames"))],
        &["cannot parse the answer of node3"],
    ),
    left_out("code-without-end", &[("node3", Means::Server("code-without-end"))], &["cannot probe node3"]),
    left_out(
        "escapes",
        &[("node3", Means::Server("escapes"))],
        &["cannot probe node3", "\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}txt"],
    ),
    // Two of the three members of etcd, so that no create is possible.
    Case {
        name: "silence",
        lies: &[("node2", Means::Server("no-beginning")), ("node3", Means::Server("no-end"))],
        breaks: "",
        code: CONNECTION,
        says: &[
            "the connection to node2 was lost: no answer",
            "no end after",
            "etcd needs 2 of its 3 members",
        ],
        patience: SILENCE,
        refuses_kubeconfig: false,
    },
    Case {
        name: "requests-without-end",
        lies: &[("node3", Means::Server("requests-without-end"))],
        breaks: "rm /usr/local/bin/crictl",
        code: FAILED,
        says: &["the host asks for it a second time"],
        patience: PATIENCE,
        refuses_kubeconfig: false,
    },
    Case {
        name: "kubeconfig-that-starts-a-program",
        lies: &[(
            "node1",
            Means::Program {
                replace: r#"cat >/usr/local/sbin/tail <<'END'
#!/bin/sh
case $(readlink /proc/self/fd/0) in
  /etc/kubernetes/admin.conf)
    exec sed 's/^  user:$/  user:\n    exec: {apiVersion: client.authentication.k8s.io\/v1, command: touch, args: [\/tmp\/owned]}/'
    ;;
esac
exec /usr/bin/tail "$@"
END
chmod +x /usr/local/sbin/tail
tail -c +1 </etc/kubernetes/admin.conf | grep -q 'command: touch'"#,
                restore: "rm /usr/local/sbin/tail",
            },
        )],
        breaks: "",
        code: FAILED,
        says: &["/etc/kubernetes/admin.conf of node1 is refused", "exec", "node1 may be compromised"],
        patience: PATIENCE,
        refuses_kubeconfig: true,
    },
];
