//! Wait until KubeSphere is ready.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kk_engine::{Action, Apply, Change, Context, Facts, Failure, HostWork, Load, Run, Task};

use super::{
    look::look,
    progress::Progress,
    state::{self, State},
};
use crate::{
    base::{shell::script, slots},
    model::inputs::Inputs,
};

/// A time longer than any payload takes; components have their own limits.
const LIMIT: Duration = Duration::from_hours(2);

/// Reports each step of a component.
pub(super) fn task(inputs: &Inputs) -> Task {
    let server = state::server(inputs.api_host);
    let text = concat!(include_str!("ask.sh"), include_str!("wait.sh"));
    let wait = Wait {
        script: script(&[("server", &server)], text).into(),
        revision: inputs.installer.revision(),
        address: inputs.api_host.internal_address.to_string(),
    };
    let work = HostWork::new(vec![Box::new(wait)])
        .needs(slots::installer_applied_slot())
        .provides(slots::kubesphere_ready_slot());
    Task::new("wait_until_ready", "Wait until KubeSphere is ready")
        .timeout(LIMIT)
        .on(&inputs.api_host.name, work)
}

#[derive(Clone)]
struct Wait {
    script: Arc<str>,
    revision: String,
    /// The address of a node, for the console.
    address: String,
}

impl Action for Wait {
    fn check(&self, _facts: &Facts) -> Change {
        Change::needed("wait until the components of KubeSphere are ready")
    }

    fn apply(&self, _facts: &Facts) -> Apply {
        Apply::Run(Arc::new(self.clone()))
    }

    fn load(&self) -> Load {
        Load::Wait
    }
}

#[async_trait]
impl Run for Wait {
    async fn run(&self, context: Context) -> Result<(), Failure> {
        let mut progress = Progress::new(&self.revision);
        let judge = |state: &State, now| progress.look(state, now);
        let (end, state) = look(&context, self.script.clone(), LIMIT, judge).await.map_err(ended)?;
        end.map(|()| self.tell(&context, &state))
    }
}

impl Wait {
    /// Adds the results for the user to the output at the end of the run.
    fn tell(&self, context: &Context, state: &State) {
        let count = state.components().iter().filter(|one| one.phase == "Ready").count();
        let version = state.version().map_or_else(String::new, |version| format!("{version}, "));
        context.slots.output("KubeSphere", format!("{version}{count} components are ready"));
        if let Some(port) = state.console {
            context.slots.output("console", format!("http://{}:{port} (account admin)", self.address));
            let password = "kubectl -n kubesphere-system get secret kubesphere-secret -o jsonpath='{.data.initAdminPassword}' | base64 -d";
            context.slots.output("password of admin", password);
        }
    }
}

fn ended(output: Result<kk_connector::Output, kk_connector::Error>) -> Failure {
    match output {
        Err(error) => error.into(),
        Ok(output) => Failure {
            code: Some(output.code),
            stderr: output.stderr.lines().map(str::to_owned).collect(),
            ..Failure::new("the wait for KubeSphere ended too early")
        }
        .transient(),
    }
}
