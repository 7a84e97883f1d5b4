//! Open the cluster for joins: a bootstrap token, and the CA by which joining nodes know the cluster.

use std::sync::Arc;

use kk_engine::{HostWork, Task, actions::Command};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    Target, kubeadm,
    modules::{KUBECTL, joining, slots},
};

/// Only when some node is to join. A cluster made just now knows the token from `kubeadm init`.
pub(super) fn task(target: &Target) -> Task {
    let task = Task::new("open_for_joins", "Open the cluster for joins");
    if joining(target).is_empty() {
        return task;
    }
    let read_ca = "cat /etc/kubernetes/pki/ca.crt\n";
    let command = if target.is_initialised() {
        let expires = (OffsetDateTime::now_utc() + Duration::hours(1))
            .replace_nanosecond(0)
            .expect("0 is a nanosecond");
        let expires = expires.format(&Rfc3339).expect("a time of this century has an RFC 3339 form");
        Command::new(
            "make a bootstrap token for an hour",
            format!("{KUBECTL}kubectl apply -f token.yaml >/dev/null\n{read_ca}"),
        )
        .file("token.yaml", kubeadm::token_secret(&target.token, &expires).into_bytes())
    } else {
        Command::new("read the CA of the cluster", read_ca)
    };
    let action = command.output(Arc::new(|stdout, values| {
        values.fill(&slots::cluster_ca(), stdout.to_owned());
        Ok(())
    }));
    let first = &target.spec.first_control_plane().name;
    let mut work = HostWork::new(vec![Box::new(action)])
        .needs(slots::initialised().key())
        .provides(slots::cluster_ca().key());
    if target.is_initialised() {
        work = work.needs(slots::node_tools(first).key());
    }
    task.on(first, work)
}
