//! Plans of a create on fresh hosts and on unusual hosts.

use super::plan_of;
use crate::testing;

#[tokio::test]
async fn three_fresh_hosts_get_everything() {
    insta::assert_snapshot!(plan_of(testing::sample("three-nodes.yaml"), |_| {}).await);
}

#[tokio::test]
async fn every_sample_can_be_planned() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config-samples");
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let plan = plan_of(testing::sample(&name), |_| {}).await;
        assert!(plan.contains("kubeadm init"), "{name}");
    }
}

#[tokio::test]
async fn an_odd_host_changes_the_plan_where_it_must() {
    let even = plan_of(testing::sample("all-in-one.yaml"), |_| {}).await;
    let odd = plan_of(testing::sample("all-in-one.yaml"), |facts| {
        facts.swaps = vec!["/dev/sda2".into()];
        facts.selinux = "enforcing".into();
        facts.hostname = "localhost".into();
    })
    .await;
    for change in ["disable_swap", "relax_selinux", "set the host name to"] {
        assert!(!even.contains(change) && odd.contains(change), "{change}");
    }
    let mut spec = testing::sample("all-in-one.yaml");
    spec.system.relax_selinux = false;
    let enforcing = plan_of(spec, |facts| facts.selinux = "enforcing".into()).await;
    assert!(!enforcing.contains("relax_selinux"));
}

/// If the file does not permit kk to configure the operating system, the host's own settings stay, and the cluster works.
#[tokio::test]
async fn a_host_that_is_configured_by_other_means_gets_what_the_cluster_needs() {
    let mut spec = testing::sample("all-in-one.yaml");
    spec.system.skip_configure_os = true;
    let plan = plan_of(spec, |facts| facts.selinux = "enforcing".into()).await;
    for task in ["record_identity", "write_hosts_block", "create_users", "create_directories"] {
        assert!(plan.contains(task), "{task}: {plan}");
    }
    for task in ["disable_swap", "relax_selinux", "load_kernel_modules", "apply_sysctls", "raise_limits"] {
        assert!(!plan.contains(task), "{task}");
    }
}

#[tokio::test]
async fn network_manager_is_told_of_the_interfaces_of_pods_where_it_runs() {
    let plan = |active| {
        plan_of(testing::sample("all-in-one.yaml"), move |facts| {
            let unit = kk_engine::UnitFact { active, ..Default::default() };
            facts.units.insert("NetworkManager.service".into(), unit);
        })
    };
    assert!(!plan(false).await.contains("NetworkManager"));
    let plan = plan(true).await;
    for change in ["write /etc/NetworkManager/conf.d/99-kubekey.conf", "reload NetworkManager.service"] {
        assert!(plan.contains(change), "{change}: {plan}");
    }
}

#[tokio::test]
async fn what_a_boot_would_bring_back_is_changed_where_it_comes_from() {
    use crate::capabilities::os::{disable_swap::UNITS, write_hosts_block::REWRITTEN};
    for (rewritten, changed) in [("no\n", false), ("yes\n", true)] {
        let plan = plan_of(testing::sample("all-in-one.yaml"), |facts| {
            facts.reply(&UNITS, "dev-zram0.swap\n");
            facts.reply(&REWRITTEN, rewritten);
            let template = "/etc/cloud/templates/hosts.debian.tmpl".to_owned();
            facts.files.insert(template, kk_engine::FileFact::default());
        })
        .await;
        assert!(plan.contains("mask dev-zram0.swap"), "{plan}");
        assert_eq!(plan.contains("write a block into /etc/cloud/templates/hosts.debian.tmpl"), changed);
    }
}
