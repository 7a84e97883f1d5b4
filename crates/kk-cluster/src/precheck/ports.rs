//! Ports that programs of the cluster need and others hold.

use crate::{findings::Findings, inputs::Inputs, requirements::Protocol};

/// The kernel keeps this much of a program's name (`TASK_COMM_LEN` without its end, proc(5)).
const COMM: usize = 15;

pub(crate) fn check(inputs: &Inputs, found: &mut Findings) {
    for (host, facts) in inputs.hosts() {
        for port in inputs.requirements.ports(host).iter().filter(|port| port.protocol == Protocol::Tcp) {
            let ours = port.program;
            let Some(program) =
                facts.ports.get(&port.number).filter(|program| program[..] != ours[..ours.len().min(COMM)])
            else {
                continue;
            };
            // A program that starts or ends while it is looked at has no name. On a node that has joined it is its own, which
            // was started again; if not, it does not become ready, and that is told.
            if program.is_empty() && inputs.has_joined(host) {
                continue;
            }
            let other = if program.is_empty() { "another program" } else { program };
            found.error(
                host,
                format!("port {} is taken by {other}", port.number),
                format!("{ours} needs it: stop {other}, or move one of the two"),
            );
        }
    }
}
