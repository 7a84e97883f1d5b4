//! Check that all components learn of new Services: part of the wait for nodes, after a restart of an API server or of
//! kube-proxy.

use crate::base::shell;

/// Follows `ready.sh`, whose functions it uses. `domain` is the DNS domain of the cluster. `routed`: kube-proxy routes Services.
pub(super) fn script(domain: &str, routed: bool) -> String {
    let variables = [("domain", domain), ("routed", if routed { "yes" } else { "" })];
    shell::script(&variables, include_str!("new_service.sh")) + "new_service_is_known\n"
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::script;
    use crate::testing;

    const NOW: &str = "date -u +%Y-%m-%dT%H:%M:%SZ";
    const KNOWN: &str = "case $name in *kube-system*) echo '10.9.0.7      STREAM kk-verify' ;; *) echo '10.9.0.8      STREAM kk-verify' ;; esac";

    struct Outcome {
        done: bool,
        printed: String,
        said: String,
        /// The requests to the API, as a letter each: pods, create and delete of the Service, new and removed namespace.
        asked: String,
    }

    /// Runs the script with a single API server, which started at the time that `started` prints, and with this script as
    /// `getent`.
    fn run(started: &str, getent: &str, routed: bool) -> Outcome {
        run_with(started, getent, routed, "printf 10.9.0.8")
    }

    /// `namespace` is the answer to the creation of a namespace with its Service.
    fn run_with(started: &str, getent: &str, routed: bool, namespace: &str) -> Outcome {
        run_after(started, "echo a 2026-01-01T00:00:00Z", "", getent, routed, namespace)
    }

    /// `proxies` and `nodes` print since when they exist.
    fn run_after(
        started: &str,
        proxies: &str,
        nodes: &str,
        getent: &str,
        routed: bool,
        namespace: &str,
    ) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let program = |name: &str, text: &str| testing::program(directory.path(), name, text);
        program(
            "kubectl",
            &format!(
                "case \" $*\" in *kube-proxy*startedAt*) {proxies} ;; *creationTimestamp*) {nodes} ;; *startedAt*) {started} ;; *kube-system' create '*) cat >made.json; printf c >>asked; printf 10.9.0.7 ;; \
                 *' create '*) cat >made.json; printf n >>asked; {namespace} ;; *' delete namespace '*) printf r >>asked ;; \
                 *' delete '*) printf d >>asked ;; *podIPs*) printf p >>asked; printf 'a p1 True 10.1.0.2\\nb p2 False 10.2.0.2\\nc p3 True 10.3.0.2\\n' ;; esac"
            ),
        );
        program("unshare", "for name; do :; done; server=$(head -n 1 resolv.conf); . ./getent.sh");
        program("sleep", "exit 0");
        fs::write(directory.path().join("getent.sh"), getent).unwrap();
        // The clock of the test advances by 10 s with each call.
        let library = "kk_uptime() { echo . >>ticks; echo $(($(wc -l <ticks) * 10)); }; kk_fail() { echo \"$*\" >&2; return 1; }";
        let ready = shell_functions();
        let text = script("lab.local", routed);
        let output = testing::run_script(directory.path(), &format!("{library}\n{ready}\n{text}"));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Outcome {
            done: output.status.success(),
            printed: text(output.stdout),
            said: text(output.stderr),
            asked: fs::read_to_string(directory.path().join("asked")).unwrap_or_default(),
        }
    }

    fn shell_functions() -> String {
        crate::base::shell::script(&[("absent", "")], include_str!("ready.sh"))
    }

    #[test]
    fn nothing_is_made_while_all_api_servers_have_been_there_for_long() {
        let outcome = run("echo 2026-01-01T00:00:00Z", "exit 1", true);
        assert!(outcome.done, "{}", outcome.said);
        assert_eq!((outcome.printed.as_str(), outcome.asked.as_str()), ("", ""));
    }

    #[test]
    fn after_a_start_of_an_api_server_all_ready_pods_must_know_a_new_service_and_nodes_are_to_ask_it() {
        let late = "[ -e \"late$server\" ] || { : >\"late$server\"; exit 2; }; ";
        for (routed, printed) in [(true, "a new Service\thttp://10.9.0.7:9153/metrics\n"), (false, "")] {
            let outcome = run(NOW, &format!("{late}{KNOWN}"), routed);
            assert!(outcome.done, "{}", outcome.said);
            assert_eq!((outcome.printed.as_str(), outcome.asked.as_str()), (printed, "dcrnp"));
        }
    }

    #[test]
    fn so_it_is_after_a_start_of_kube_proxy_on_a_node_that_was_there_before() {
        let old = "2026-01-01T00:00:00Z";
        let now = "$(date -u +%Y-%m-%dT%H:%M:%SZ)";
        for (began, made, routed, asked) in
            [(now, old, true, "dcrnp"), (now, old, false, ""), (now, now, true, ""), (old, old, true, "")]
        {
            let proxies = format!("echo b {old}; echo a {began}");
            let nodes = format!("echo a {made}; echo b {now}");
            let outcome =
                run_after(&format!("echo {old}"), &proxies, &nodes, KNOWN, routed, "printf 10.9.0.8");
            assert!(outcome.done, "{}", outcome.said);
            assert_eq!(outcome.asked, asked, "{began} {made} {routed}");
            assert_eq!(outcome.printed.is_empty(), asked.is_empty());
        }
        let proxies = format!("echo a {now}");
        for (proxies, nodes) in [("exit 1", ""), (&proxies, "exit 1")] {
            let outcome = run_after(&format!("echo {old}"), proxies, nodes, KNOWN, true, "printf 10.9.0.8");
            assert_eq!(outcome.asked, "dcrnp", "no answer is not no");
        }
    }

    #[test]
    fn a_pod_that_never_learns_of_it_is_named_and_the_service_goes() {
        let old = "case $name in kubernetes.*) echo 10.9.0.1 ;; *) case $server in *10.3*) exit 2 ;; esac; ";
        let outcome = run(NOW, &format!("{old}{KNOWN} ;; esac"), true);
        assert!(!outcome.done);
        assert!(outcome.said.contains("pod p3 of c has learnt of no new Service"), "{}", outcome.said);
        assert_eq!(outcome.asked, "dcrnprd");
    }

    /// CoreDNS resolves no name in a namespace that it has not learnt of.
    #[test]
    fn a_pod_that_never_learns_of_a_new_namespace_is_named_and_one_that_cannot_be_made_is_not_asked_for() {
        let old = "case $name in *kk-verify.kk-verify.*) exit 2 ;; kubernetes.*) echo 10.9.0.1 ;; *) echo '10.9.0.7   STREAM kk-verify' ;; esac";
        let outcome = run(NOW, old, true);
        assert!(
            !outcome.done && outcome.said.contains("pod p1 of a has learnt of no new Service"),
            "{}",
            outcome.said
        );
        for refused in ["exit 1", "echo refused >&2; exit 1"] {
            let outcome = run_with(NOW, old, true, refused);
            assert!(outcome.done, "{}", outcome.said);
        }
    }

    #[test]
    fn a_pod_that_answers_nothing_is_left_to_those_that_ask_pods() {
        let outcome = run(NOW, "exit 2", true);
        assert!(outcome.done, "{}", outcome.said);
    }

    #[test]
    fn an_api_that_does_not_say_since_when_it_runs_is_an_error() {
        let outcome = run("exit 1", KNOWN, true);
        assert!(!outcome.done && outcome.said.contains("since when its servers run"), "{}", outcome.said);
    }
}
