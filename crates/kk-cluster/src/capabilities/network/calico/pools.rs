//! The address pools of a running cluster. calico creates them when it starts for the first time; later it ignores the settings,
//! so a changed file would have no effect.

use kk_config::{Calico as Settings, Host, Role};
use kk_engine::{ProbeSpec, Question};
use serde_json::{Map, Value};

use super::settings;
use crate::{
    base::{api_server, findings::Findings, shell::script},
    model::inputs::Inputs,
};

/// The names of the pools that calico creates.
const V4: &str = "default-ipv4-ippool";
const V6: &str = "default-ipv6-ippool";

/// An address pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    name: String,
    block_size: Option<u64>,
    ipip: String,
    vxlan: String,
    nat_outgoing: bool,
}

/// The pools, as the API of a control plane returns them.
pub(super) const POOLS: Question<Vec<Pool>> = Question::new("calico_pools", "", parse);

/// Each control plane queries its own API server.
pub(super) fn asks(host: &Host, probe: &mut ProbeSpec) {
    if host.has_role(&Role::ControlPlane) {
        let server = api_server::url(host);
        let text = script(&[("server", server.as_str())], include_str!("pools.sh"));
        probe.ask(&POOLS.with_snippet(text));
    }
}

fn parse(printed: &str) -> Option<Vec<Pool>> {
    if printed.trim().is_empty() {
        return Some(Vec::new());
    }
    let list: Value = serde_json::from_str(printed).ok()?;
    let pool = |item: &Value| {
        let spec = &item["spec"];
        let mode =
            |key: &str| spec[key].as_str().filter(|mode| !mode.is_empty()).unwrap_or("Never").to_owned();
        Some(Pool {
            name: item["metadata"]["name"].as_str()?.to_owned(),
            block_size: spec["blockSize"].as_u64(),
            ipip: mode("ipipMode"),
            vxlan: mode("vxlanMode"),
            nat_outgoing: spec["natOutgoing"].as_bool().unwrap_or_default(),
        })
    };
    list["items"].as_array()?.iter().map(pool).collect()
}

/// A setting of a pool: its key in the pool, its field in the file, and both values.
type Difference = (&'static str, &'static str, Value, Value);

/// Reports settings of the file that the pools do not have. Pools of the user's own are not compared.
pub(super) fn findings(inputs: &Inputs, found: &mut Findings) {
    let (Some(settings), Some(facts)) = (settings(inputs.spec), inputs.facts(inputs.api_host)) else {
        return;
    };
    if !settings.default_pool {
        return;
    }
    for pool in facts.answer(&POOLS).answered().unwrap_or_default() {
        if let (V4, Some(wanted), Some(there)) = (pool.name.as_str(), settings.block_size, pool.block_size)
            && u64::from(wanted) != there
        {
            found.error(
                None,
                format!("the address pool {V4} has blocks of /{there}, but the file sets /{wanted}"),
                "revert spec.network.calico.blockSize: the blocks of a pool cannot change; or create another pool \
                 and disable this one (Calico, \"Migrate from one IP pool to another\")",
            );
        }
        let differences = differences(settings, &pool);
        if differences.is_empty() {
            continue;
        }
        let each = |text: &dyn Fn(&Difference) -> String| {
            differences.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        let there = each(&|(key, _, there, _)| format!("{key} {}", plain(there)));
        let wanted = each(&|(_, field, _, wanted)| format!("{field} {}", plain(wanted)));
        let fields = each(&|(_, field, ..)| (*field).to_owned());
        let patch: Map<String, Value> =
            differences.iter().map(|(key, _, _, wanted)| ((*key).to_owned(), wanted.clone())).collect();
        found.error(
            None,
            format!("the address pool {} has {there}, but the file sets {wanted}", pool.name),
            format!(
                "calico does not change a pool that exists: revert {fields} in spec.network.calico, or change the \
                 pool first: kubectl patch ippools.crd.projectcalico.org {} --type merge -p '{}'",
                pool.name,
                serde_json::json!({"spec": patch})
            ),
        );
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn differences(settings: &Settings, pool: &Pool) -> Vec<Difference> {
    let mode = |key, field, there: &str, wanted: kk_config::v1alpha2::Encapsulation| {
        (key, field, Value::from(there), Value::from(wanted.to_string()))
    };
    let vxlan = mode("vxlanMode", "vxlanMode", &pool.vxlan, settings.vxlan);
    let nat = |field, wanted: bool| ("natOutgoing", field, pool.nat_outgoing.into(), wanted.into());
    let all = match pool.name.as_str() {
        V4 => vec![
            mode("ipipMode", "ipipMode", &pool.ipip, settings.ipip),
            vxlan,
            nat("ipv4NatOutgoing", settings.nat_outgoing),
        ],
        V6 => vec![vxlan, nat("ipv6NatOutgoing", settings.nat_outgoing_v6)],
        _ => Vec::new(),
    };
    all.into_iter().filter(|(_, _, there, wanted)| there != wanted).collect()
}
