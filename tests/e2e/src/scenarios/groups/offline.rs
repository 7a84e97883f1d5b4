//! The group `offline`.

use super::super::{HELM, addons, init_registry, offline, registry};
use super::capability;
use crate::selection::When;
use crate::suite::{Group, Scenario};

pub(super) const GROUP: Group = Group {
    name: "offline",
    when: When::InTurn,
    chains: &[
        &[
            Scenario::new(
                "offline",
                "a bundle of an export that was killed makes a cluster, and no packet goes elsewhere than to the hosts",
                220,
                15,
                offline::run,
            )
            .covers(&["crates/kk-artifact/", capability!("images")]),
        ],
        &[
            Scenario::new(
                "packages",
                "a host without socat and conntrack gets them from a bundle, and nothing else; a delete takes them back",
                140,
                15,
                offline::packages::run,
            )
            .covers(&["crates/kk-artifact/src/packages/", capability!("os")]),
        ],
        &[
            Scenario::new(
                "registry",
                "pushes that were killed bring the images of a bundle into a registry, and a cluster pulls them from there",
                90,
                15,
                registry::run,
            )
            .covers(&["crates/kk-artifact/src/oci/", capability!("registry")]),
        ],
        &[
            Scenario::new(
                "init-registry",
                "a registry on a node serves a cluster that pulls from nowhere else, outlives it, and goes without a trace",
                120,
                15,
                init_registry::run,
            )
            .needs(&["--with", "registry"])
            .covers(&[capability!("registry")]),
        ],
        &[
            Scenario::new(
                "addons",
                "a chart and a manifest of a bundle are installed once, healed, changed, and taken up after a kill",
                140,
                20,
                addons::run,
            )
            .needs(HELM)
            .covers(&[
                capability!("addons"),
                "crates/kk-artifact/src/charts/",
                "crates/kk-cluster/src/base/supply/addons.rs",
            ]),
        ],
    ],
};
