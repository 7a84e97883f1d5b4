//! The program as a script sees it: exit code, standard output, standard error.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use insta::assert_snapshot;
use tempfile::{TempDir, tempdir};

/// Runs `kk` in a directory, without a terminal.
fn kk(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kk"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .env("HOME", directory)
        .env_remove("CI")
        .env_remove("KKZONE")
        .env_remove("DOCKER_CONFIG")
        .output()
        .expect("the program was built for this test")
}

/// Exit code, standard output and standard error at once.
fn all(directory: &Path, arguments: &[&str]) -> String {
    let output = kk(directory, arguments);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("all output is UTF-8");
    let code = output.status.code().expect("no signal ended it");
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

fn stdout(arguments: &[&str]) -> String {
    let output = kk(Path::new("."), arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("all output is UTF-8")
}

/// A directory with one file in it.
fn with_file(name: &str, text: &str) -> TempDir {
    let directory = tempdir().expect("there is a directory for temporary files");
    fs::write(directory.path().join(name), text).expect("the directory is writable");
    directory
}

/// A directory that is the home directory of a user with the key that samples name.
fn with_key() -> TempDir {
    let directory = tempdir().expect("there is a directory for temporary files");
    fs::create_dir(directory.path().join(".ssh")).expect("the directory is writable");
    fs::write(directory.path().join(".ssh/id_ed25519"), "").expect("the directory is writable");
    directory
}

#[test]
fn an_unknown_command_is_a_usage_error_with_a_suggestion() {
    assert_snapshot!(all(Path::new("."), &["creat", "config"]));
}

#[test]
fn a_command_without_its_file_is_a_usage_error() {
    assert_snapshot!(all(Path::new("."), &["config", "validate"]));
}

#[test]
fn no_command_at_all_shows_help_and_is_a_usage_error() {
    let output = kk(Path::new("."), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: kk <COMMAND>"));
}

#[test]
fn a_file_that_does_not_exist_is_a_configuration_error() {
    assert_snapshot!(all(Path::new("."), &["config", "validate", "-f", "nowhere.yaml"]));
}

#[test]
fn all_errors_of_a_file_are_shown_at_once() {
    let text = "\
apiVersion: kubekey.kubesphere.io/v1alpha2
kind: Cluster
metadata: {name: sample}
spec:
  hosts:
  - {name: node1, address: 10.0.0.1, user: root, password: hunter2}
  - {name: node1, address: 10.0.0.300, user: root, password: hunter2}
  roleGroups:
    etcd: [node1]
    control-plane: [node9]
  network: {plugin: flannel}
";
    let directory = with_file("bad.yaml", text);
    let shown = all(directory.path(), &["config", "validate", "-f", "bad.yaml"]);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.starts_with("exit 3\n--- stdout\n--- stderr\nerror: "), "{shown}");
    for place in ["7:12", "7:28", "10:21"] {
        assert!(shown.contains(&format!("--> bad.yaml:{place}\n")), "{place}: {shown}");
    }
    let errors = shown.matches("\nerror: ").count();
    assert!(
        shown.ends_with(&format!("\n{errors} errors in the configuration; no host was contacted\n")),
        "{shown}"
    );
}

#[test]
fn what_is_no_yaml_is_a_configuration_error() {
    let directory = with_file("bad.yaml", "spec: [");
    assert_eq!(kk(directory.path(), &["config", "validate", "-f", "bad.yaml"]).status.code(), Some(3));
}

#[test]
fn a_sample_is_written_once_for_its_owner_only_and_is_valid() {
    use std::os::unix::fs::PermissionsExt;

    let directory = with_key();
    let shown =
        all(directory.path(), &["create", "config", "--name", "prod", "--with-kubernetes", "v1.35.1"]);
    assert_snapshot!(shown);
    let path = directory.path().join("config-prod.yaml");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_snapshot!(all(directory.path(), &["config", "validate", "-f", "config-prod.yaml"]));

    fs::write(&path, "mine").unwrap();
    assert_snapshot!(all(directory.path(), &["create", "config", "--name", "prod"]));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(
        kk(directory.path(), &["create", "config", "--name", "prod", "--force"]).status.code(),
        Some(0)
    );
    assert!(fs::read_to_string(&path).unwrap().contains("kind: Cluster"));
}

#[test]
fn every_style_of_sample_can_be_had_on_standard_output() {
    for style in ["all-in-one", "three-nodes", "ha", "offline"] {
        let text = stdout(&["create", "config", "--style", style, "-f", "-"]);
        let directory = with_key();
        fs::write(directory.path().join("cluster.yaml"), &text).unwrap();
        fs::write(directory.path().join("files-ca.pem"), "").unwrap();
        fs::create_dir(directory.path().join("registry-certs")).unwrap();
        let output = kk(directory.path(), &["config", "validate", "-f", "cluster.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{style}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_version_that_is_none_is_a_usage_error() {
    let directory = tempdir().unwrap();
    assert_snapshot!(all(directory.path(), &["create", "config", "--with-kubernetes", "latest"]));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_not_writable_is_named() {
    assert_snapshot!(all(Path::new("."), &["create", "config", "-f", "/proc/nowhere/a.yaml"]));
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_no_temporary_one() {
    let shown = all(Path::new("."), &["create", "config", "-f", "/sys/a.yaml"]);
    assert!(shown.contains("failed to write /sys/a.yaml: ") && !shown.contains(".tmp"), "{shown}");
}

#[test]
fn the_schema_is_json_and_knows_the_fields() {
    let schema: serde_json::Value = serde_json::from_str(&stdout(&["config", "schema"])).unwrap();
    assert!(schema.to_string().contains("roleGroups"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&["completion", shell]);
        assert!(script.contains("validate"), "{shell}");
        assert_eq!(script, stdout(&["completion", "-t", &shell.to_uppercase()]), "{shell}: KubeKey's way");
    }
}

#[test]
fn a_completion_script_is_bash_that_loads() {
    let directory = with_file("kk.bash", &stdout(&["completion", "bash"]));
    let status = Command::new("bash").args(["-n", "kk.bash"]).current_dir(directory.path()).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_shell_that_is_unknown_or_missing_is_a_usage_error() {
    for arguments in [&["completion"][..], &["completion", "csh"], &["completion", "bash", "-t", "zsh"]] {
        assert_eq!(kk(Path::new("."), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn the_version_is_told_in_every_form() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(stdout(&["version", "-o", "short"]), format!("{version}\n"));
    assert_eq!(stdout(&["--version"]), format!("kk {version}\n"));
    let json: serde_json::Value = serde_json::from_str(&stdout(&["version", "-o", "json"])).unwrap();
    assert_eq!(json["version"], version);
    let default = json["kubernetes"]["default"].as_str().unwrap();
    let yaml = stdout(&["version", "-o", "yaml"]);
    assert!(yaml.contains(&format!("  default: {default}\n")), "{yaml}");
    let text = stdout(&["version"]);
    assert!(text.contains(default) && text.lines().count() == 1, "{text}");
}

#[test]
fn the_known_versions_of_kubernetes_are_listed() {
    let list = stdout(&["version", "--show-supported-k8s"]);
    assert!(list.lines().any(|line| line == kk_config::DEFAULT_KUBERNETES_VERSION), "{list}");
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let script = format!("'{}' config schema | head -c 1", env!("CARGO_BIN_EXE_kk"));
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn what_is_no_configuration_file_is_refused_with_its_reason() {
    let directory = with_file("utf-16.yaml", "");
    fs::write(directory.path().join("utf-16.yaml"), b"\xff\xfek\0i\0n\0d\0").unwrap();
    fs::write(directory.path().join("latin-1.yaml"), b"kind: Cluster\n# K\xf6ln\n").unwrap();
    std::os::unix::fs::symlink("loop.yaml", directory.path().join("loop.yaml")).unwrap();
    let cases = [
        ("utf-16.yaml", "utf-16.yaml is not UTF-8 text (line 1)"),
        ("latin-1.yaml", "latin-1.yaml is not UTF-8 text (line 2)"),
        ("/dev/zero", "/dev/zero is larger than 16 MiB"),
        (".", "cannot read .: Is a directory"),
        ("loop.yaml", "cannot read loop.yaml: Too many levels of symbolic links"),
    ];
    for (file, reason) in cases {
        let shown = all(directory.path(), &["config", "validate", "-f", file]);
        assert!(shown.starts_with("exit 3\n") && shown.contains(reason), "{file}: {shown}");
    }
}

#[test]
fn a_file_can_come_from_standard_input() {
    let validate = |text: &str| {
        let directory = with_file("cluster.yaml", text);
        let file = fs::File::open(directory.path().join("cluster.yaml")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kk"));
        let home = with_key();
        let command = command.args(["config", "validate", "-f", "-"]).env("HOME", home.path());
        let output = command.stdin(file).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let shown = validate(&stdout(&["create", "config", "-f", "-"]));
    assert!(shown.starts_with("standard input is valid: cluster sample"), "{shown}");
    let shown = validate("kind: [");
    assert!(shown.contains("--> standard input:1:"), "{shown}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_to_programs_too() {
    let text = "kind: Cluster\nmetadata: {name: a}\nspec:\n  hosts: [{name: A, address: 10.0.0.1}]\n  storage: {openebs: {basePath: /x}}\n";
    let directory = with_file("bad.yaml", text);
    let output = kk(directory.path(), &["config", "validate", "-f", "bad.yaml", "--output", "json"]);
    assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn the_name_of_this_machine_in_events_can_name_no_host() {
    let name = kk_engine::CONTROL;
    let text = format!(
        "kind: Cluster\nmetadata: {{name: a}}\nspec:\n  hosts: [{{name: {name}, address: 10.0.0.1}}]\n  \
         roleGroups: {{etcd: [{name}], control-plane: [{name}]}}\n"
    );
    let directory = with_file("cluster.yaml", &text);
    let shown = all(directory.path(), &["config", "validate", "-f", "cluster.yaml"]);
    assert!(shown.contains(&format!("`{name}` cannot name a host")), "{shown}");
}

#[test]
fn versions_are_listed_shown_and_added() {
    let directory = with_file("new.yaml", &format!("etcd: {{amd64: {{9.9.9: {}}}}}\n", "a".repeat(64)));
    let ask = |line: &str| all(directory.path(), &line.split(' ').collect::<Vec<_>>());
    for (line, code, words) in [
        ("versions list", 0, "containerd"),
        ("versions list crictl", 0, "1.36.0   amd64, arm64"),
        ("versions list nothing", 2, "there is no component nothing"),
        ("versions show v1.36.0", 0, "registry.k8s.io/kube-apiserver:v1.36.0"),
        ("versions show v1.37.1", 0, "none: the checksum published next to the file is used"),
        ("versions show v1.20.0", 2, "is not supported"),
        ("versions add --file new.yaml --catalogue own.yaml", 0, "own.yaml: 1 version added"),
        ("versions add --file new.yaml --catalogue own.yaml", 0, "own.yaml: 0 versions added"),
        ("versions list etcd --catalogue own.yaml", 0, "9.9.9    amd64"),
        ("versions add --file missing.yaml --catalogue own.yaml", 3, "cannot read missing.yaml"),
    ] {
        let shown = ask(line);
        assert!(shown.starts_with(&format!("exit {code}\n")) && shown.contains(words), "{line}: {shown}");
    }
}

/// What people type who know KubeKey, and the words of the answer.
#[test]
fn what_only_kubekey_has_is_named_as_such() {
    let cases = [
        ("init os -f c.yaml", "`kk init os`"),
        ("init registry -f c.yaml --download-cmd x", "`--download-cmd`"),
        ("alpha create phase os", "`kk alpha`"),
        ("add nodes -f c.yaml --skip-etcd", "`--skip-etcd` is an option that only KubeKey has"),
        ("upgrade -f c.yaml --with-etcd", "`--with-etcd` without a value is an option that only KubeKey has"),
        ("create cluster --with-local-storage", "`--with-local-storage`"),
        ("delete cluster --with-kubernetes v1.36.0", "`--with-kubernetes`"),
        ("create cluster -i inventory.yaml", "name the hosts in spec.hosts"),
        ("create cluster -c config.yaml", "write the settings into the Cluster file"),
        ("add nodes --set a=b", "write the settings into the Cluster file"),
        ("delete node node1 -i inventory.yaml", "name the hosts in spec.hosts"),
        ("upgrade cluster -f c.yaml", "it is `kk upgrade -f FILE`"),
        ("precheck -i inventory.yaml", "--dry-run"),
        ("run playbook.yaml", "kk runs no playbooks"),
        ("create inventory", "`kk create config`"),
        ("add nodes node2,node3 -f", "takes no names"),
    ];
    for (line, answer) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let shown = all(Path::new("."), &words);
        assert!(shown.starts_with("exit 2\n--- stdout\n--- stderr\nerror: "), "{line}: {shown}");
        assert!(shown.contains(answer) && shown.contains("hint: "), "{line}: {shown}");
    }
    let shown = all(Path::new("."), &["delete", "cluster", "-a"]);
    assert!(shown.contains("unexpected argument '-a'"), "{shown}");
}

#[test]
fn all_files_that_are_missing_are_named_at_once() {
    let text = "kind: Cluster\nmetadata: {name: a}\nspec:\n  hosts: [{name: n1, address: 10.0.0.1, privateKeyPath: ~/none}]\n  \
                roleGroups: {etcd: [n1], control-plane: [n1]}\n  network: {plugin: flannel}\n  \
                registry: {auths: {hub.example.com: {certsPath: ./none/certs}}}\n  \
                download: {caFile: none/ca.pem, catalogue: none/catalogue.yaml}\n  \
                bastion: {address: 10.0.0.9, privateKeyPath: /none/jump}\n  \
                kubesphere: {image: ./none.tar}\n  \
                addons:\n  - name: one\n    sources: {yaml: {path: [none/a.yaml, 'https://files.example.com/b.yaml', here.yaml]}}\n  \
                - name: two\n    sources: {chart: {path: ./none/chart, valuesFile: none/values.yaml}}\n";
    let directory = with_file("cluster.yaml", text);
    fs::write(directory.path().join("here.yaml"), "").unwrap();
    let shown = all(directory.path(), &["config", "validate", "-f", "cluster.yaml"]);
    for path in [
        "~/none",
        "./none/certs",
        "none/ca.pem",
        "none/catalogue.yaml",
        "/none/jump",
        "./none.tar",
        "none/a.yaml",
        "./none/chart",
        "none/values.yaml",
    ] {
        assert!(shown.contains(&format!("cannot read `{path}`: No such file")), "{path}: {shown}");
    }
    assert!(shown.starts_with("exit 3\n") && shown.contains("9 errors"), "{shown}");
}

#[test]
fn a_manifest_is_validated_too() {
    let directory = tempdir().unwrap();
    kk(directory.path(), &["create", "manifest", "--with-kubernetes", "v1.36.0"]);
    let validate = || all(directory.path(), &["config", "validate", "-f", "manifest.yaml"]);
    let shown = validate();
    assert!(
        shown.starts_with("exit 0\n") && shown.contains("is valid: a Manifest for hosts of amd64"),
        "{shown}"
    );
    let path = directory.path().join("manifest.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("arches:", "archs:")).unwrap();
    let shown = validate();
    assert!(shown.starts_with("exit 3\n") && shown.contains("did you mean `arches`?"), "{shown}");
}

/// Each line with its exit code and texts of the answer.
#[test]
fn answers_fit_the_command() {
    for (line, code, texts) in [
        ("upgrade –with-kubernetes v1.36.0", 2, ["an en dash `–` (U+2013)", "write `--with-kubernetes`"]),
        (
            "create config --with-kubernetes v1.23.17 -f -",
            2,
            ["Kubernetes v1.23.17 is not supported", "1.28 to 1.37"],
        ),
        ("create config --name Prod -f -", 3, ["`Prod` cannot name a cluster", "small letters"]),
        ("versions show v1.36", 2, ["`v1.36` is not a Kubernetes version", "such as v1."]),
        (
            "upgrade -f c.yaml --with-kubernetes latest",
            2,
            ["`latest` is not a Kubernetes version", "such as v1."],
        ),
        ("upgrade -f c.yaml --with-etcd newest", 2, ["--with-etcd", "`newest` is not a version"]),
        (
            "create manifest --with-kubernetes v1.30.7,v1.32.1 -o m1.yaml",
            0,
            ["lacks Kubernetes 1.31", "add a version of each"],
        ),
        ("delete node n1 -f c.yaml --yes --drain-timeout 20", 3, ["cannot read c.yaml", "No such file"]),
        ("delete node n1 -f c.yaml --yes --drain-timeout 20s", 3, ["cannot read c.yaml", "No such file"]),
        ("upgrade -f c.yaml --yes --drain-timeout 1h30m", 3, ["cannot read c.yaml", "No such file"]),
        ("upgrade -f c.yaml --yes --drain-timeout never", 2, ["'never'", "20s, 5m or 1h30m"]),
    ] {
        let directory = tempdir().unwrap();
        let shown = all(directory.path(), &line.split(' ').collect::<Vec<_>>());
        let is_right = texts.iter().all(|text| shown.contains(text));
        assert!(shown.starts_with(&format!("exit {code}\n")) && is_right, "{line}: {shown}");
        assert!(!shown.contains("sample:"), "{line}: {shown}");
    }
}

#[test]
fn the_zone_of_kubekey_has_no_effect_and_that_is_said() {
    let directory = with_file("cluster.yaml", "kind: Cluster\n");
    let with_zone = |zone: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kk"));
        let command = command.args(["config", "validate", "-f", "cluster.yaml"]).env("KKZONE", zone);
        let output = command.current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let shown = with_zone("cn");
    assert!(shown.contains("KKZONE=cn has no effect") && shown.contains("spec.download.mirror"), "{shown}");
    assert!(shown.contains("spec.registry.remoteMirrors"), "{shown}");
    assert!(!with_zone("").contains("KKZONE"));
}

#[test]
fn options_that_only_kubekey_needs_are_accepted_with_a_note() {
    for (line, code, note) in [
        ("create cluster -f none.yaml -y --skip-push-images", 3, "--skip-push-images has no effect"),
        ("artifact export -m none.yaml --skip-remove-artifact", 3, "--skip-remove-artifact has no effect"),
        ("create cluster -f none.yaml -y --skip-install-addons", 3, "cannot read none.yaml"),
    ] {
        let directory = tempdir().unwrap();
        let shown = all(directory.path(), &line.split(' ').collect::<Vec<_>>());
        assert!(shown.starts_with(&format!("exit {code}\n")) && shown.contains(note), "{line}: {shown}");
        assert!(shown.contains("cannot read none.yaml"), "{line}: {shown}");
    }
}

#[test]
fn a_sample_with_kubesphere_has_its_configuration() {
    let directory = with_key();
    fs::write(directory.path().join("ks-installer.tar"), "").unwrap();
    for (words, version) in
        [(vec!["--with-kubesphere"], "v3.4.1"), (vec!["--with-kubesphere", "3.3.2"], "v3.3.2")]
    {
        let text = stdout(&[&["create", "config", "-f", "-"], words.as_slice()].concat());
        assert!(text.contains(&format!("labels: {{version: {version}}}")), "{text}");
        assert!(text.contains("\n  devops: {\"enabled\":false}\n"), "{text}");
        fs::write(directory.path().join("cluster.yaml"), &text).unwrap();
        let output = kk(directory.path(), &["config", "validate", "-f", "cluster.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_manifest_may_have_the_registry() {
    let line = ["create", "manifest", "--with-kubernetes", "v1.36.0", "-o", "-"];
    let has_registry = |words: &[&str]| stdout(words).contains("\n    docker-registry: ");
    assert!(has_registry(&[&line[..], &["--with-registry"]].concat()) && !has_registry(&line));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_kk")).arg("version").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed to write to standard output"));
}

#[test]
fn a_manifest_has_what_several_versions_need() {
    let directory = tempdir().unwrap();
    let versions = "v1.34.0,v1.36.0";
    let output = kk(directory.path(), &["create", "manifest", "--with-kubernetes", versions, "-o", "-"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_snapshot!(String::from_utf8(output.stdout).unwrap());
    let written = kk(directory.path(), &["create", "manifest", "--with-kubernetes", "v1.36.0"]);
    assert_eq!(
        String::from_utf8_lossy(&written.stderr),
        "wrote manifest.yaml: programs and 8 images for hosts of amd64\nmake the bundle with: kk artifact export -m manifest.yaml\n"
    );
    let again = kk(directory.path(), &["create", "manifest", "--with-kubernetes", "v1.36.0"]);
    assert_eq!(again.status.code(), Some(1), "a file that exists is not overwritten");
    // The option -f of this command names something else.
    assert!(
        String::from_utf8_lossy(&again.stderr)
            .contains("hint: name another file, or overwrite it with --yes")
    );
    let entries: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(entries, ["manifest.yaml"], "nothing else is written");
}

#[test]
fn a_push_says_what_it_lacks_before_it_asks_a_registry() {
    let directory = tempdir().unwrap();
    let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
        hosts: [{name: a, address: 10.0.0.1, internalAddress: 10.0.0.1, user: root, password: x}]\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a]}\n  network: {plugin: flannel}\n";
    let registry = "  registry: {privateRegistry: \"127.0.0.1:9\"}\n";
    fs::write(directory.path().join("none.yaml"), file).unwrap();
    fs::write(directory.path().join("cluster.yaml"), [file, registry].concat()).unwrap();
    fs::create_dir(directory.path().join("images")).unwrap();
    let layout = r#"{"schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 2,
        "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "annotations": {"org.opencontainers.image.ref.name": "NAME"}}]}"#;
    for (words, name, code, said) in [
        (&["none.yaml", "--images-dir", "images"][..], "", 3, "spec.registry.privateRegistry is not set"),
        (&["cluster.yaml", "-a", "none.tar.zst", "--allow-unsigned"], "", 1, "cannot open none.tar.zst"),
        (&["cluster.yaml", "-a", "none.tar.zst"], "", 3, "no public key is given"),
        (&["cluster.yaml", "--images-dir", "none"], "", 1, "cannot read none/index.json"),
        (&["cluster.yaml", "--images-dir", "images"], "latest", 1, "gives an image the name `latest`"),
        (
            &["cluster.yaml", "--images-dir", "images"],
            "quay.io/a/b:1",
            1,
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a is missing",
        ),
    ] {
        fs::write(directory.path().join("images/index.json"), layout.replace("NAME", name)).unwrap();
        let words = [&["artifact", "images", "push", "-f"], words].concat();
        let output = kk(directory.path(), &words);
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(shown.contains(said), "{words:?}: {shown}");
        assert_eq!(output.status.code(), Some(code), "{words:?}: {shown}");
    }
}

/// The secrets are in names of files, which messages quote.
#[test]
fn commands_without_hosts_mask_the_credentials_that_they_use() {
    let directory = tempdir().unwrap();
    let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
        hosts: [{name: a, address: 10.0.0.1, user: root, password: word-1}]\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a]}\n  network: {plugin: flannel}\n  \
        registry: {privateRegistry: hub.local, auths: {hub.local: {username: u, password: word-2}}}\n";
    fs::write(directory.path().join("cluster.yaml"), file).unwrap();
    fs::create_dir(directory.path().join(".docker")).unwrap();
    // "user:word-3" in Base64.
    let logins = r#"{"auths": {"hub.example.org": {"auth": "dXNlcjp3b3JkLTM="}}}"#;
    fs::write(directory.path().join(".docker/config.json"), logins).unwrap();
    let push =
        ["artifact", "images", "push", "-f", "cluster.yaml", "--images-dir", "plain word-1 word-2 word-3"];
    let merge = ["artifact", "merge", "--base", "plain word-3", "--delta", "delta", "-o", "new"];
    for (words, shown) in [(&push[..], "plain *** *** ***"), (&merge, "plain ***")] {
        let output = kk(directory.path(), words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(shown) && !said.contains("word-"), "{words:?}: {said}");
    }
}

#[test]
fn a_file_that_every_user_can_change_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempdir().unwrap();
    let path = directory.path().join("cluster.yaml");
    let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
        hosts: [{name: a, address: 10.0.0.1, user: root, password: x}]\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a]}\n  network: {plugin: flannel}\n";
    fs::write(&path, file).unwrap();
    let warning = |name: &str| {
        let output =
            kk(directory.path(), &["artifact", "images", "push", "-f", name, "--images-dir", "none"]);
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines: Vec<&str> =
            shown.lines().filter(|line| line.contains("every user") || line.contains("chmod")).collect();
        lines.join("\n")
    };
    fs::create_dir(directory.path().join("a b")).unwrap();
    fs::copy(&path, directory.path().join("a b/cluster.yaml")).unwrap();
    std::os::unix::fs::symlink("a b/cluster.yaml", directory.path().join("link.yaml")).unwrap();
    // The name of the file, what has which mode, and the texts of the warning.
    for (name, place, mode, shown) in [
        ("cluster.yaml", "cluster.yaml", 0o666, &["can change cluster.yaml", "chmod o-w cluster.yaml"][..]),
        ("cluster.yaml", "cluster.yaml", 0o602, &["can change"]),
        ("cluster.yaml", "cluster.yaml", 0o664, &[]),
        ("cluster.yaml", "cluster.yaml", 0o600, &[]),
        ("cluster.yaml", ".", 0o707, &["can replace cluster.yaml", "chmod o-w /"]),
        ("cluster.yaml", ".", 0o1777, &[]),
        ("cluster.yaml", ".", 0o770, &[]),
        ("a b/cluster.yaml", "a b", 0o777, &["can replace a b/cluster.yaml", "/a b'"]),
        ("a b/cluster.yaml", ".", 0o707, &["can replace a b/cluster.yaml", "chmod o-w /"]),
        ("a b/cluster.yaml", ".", 0o1777, &[]),
        ("link.yaml", "a b", 0o777, &["can replace link.yaml", "/a b'"]),
    ] {
        let place = directory.path().join(place);
        let before = fs::metadata(&place).unwrap().permissions();
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
        let said = warning(name);
        assert_eq!(said.is_empty(), shown.is_empty(), "{name} {mode:o}: {said}");
        assert!(shown.iter().all(|text| said.contains(text)), "{name} {mode:o}: {said}");
        fs::set_permissions(&place, before).unwrap();
    }
}

#[test]
fn a_bundle_without_a_verified_signature_is_refused_before_a_host_is_asked() {
    let directory = tempdir().unwrap();
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kk-artifact/testdata/minisign");
    let key = |name: &str| fs::read_to_string(given.join(name)).unwrap().lines().last().unwrap().to_owned();
    let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
        hosts: [{name: a, address: 10.0.0.1, user: root, password: x}]\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a]}\n  network: {plugin: flannel}\n";
    let other = format!("{file}  download: {{publicKey: {}}}\n", key("other.pub"));
    let bundle = given.join("signed.tar.zst").display().to_string();
    for (file, said) in [(file, "no public key is given"), (&other, "the signature of")] {
        fs::write(directory.path().join("cluster.yaml"), file).unwrap();
        for command in [&["create", "cluster"][..], &["add", "nodes"], &["upgrade"], &["init", "registry"]] {
            let words = [command, &["-f", "cluster.yaml", "--dry-run", "-a", &bundle]].concat();
            let output = kk(directory.path(), &words);
            let shown = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{words:?}: {shown}");
            assert!(shown.contains(said) && shown.contains("hint: "), "{words:?}: {shown}");
        }
    }
}

#[test]
fn a_key_that_cannot_be_used_is_a_mistake_of_the_configuration_in_each_command() {
    let directory = tempdir().unwrap();
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kk-artifact/testdata/minisign");
    let bundle = given.join("signed.tar.zst").display().to_string();
    let file = "apiVersion: kubekey.kubesphere.io/v1alpha2\nkind: Cluster\nmetadata: {name: t}\nspec:\n  \
        hosts: [{name: a, address: 10.0.0.1, user: root, password: x}]\n  \
        roleGroups: {etcd: [a], control-plane: [a], worker: [a]}\n  network: {plugin: flannel}\n  \
        registry: {privateRegistry: hub.example}\n";
    fs::write(directory.path().join("cluster.yaml"), file).unwrap();
    fs::write(directory.path().join("no-key"), "RW").unwrap();
    let commands = [
        (&["create", "cluster", "-f", "cluster.yaml", "--dry-run"][..], true),
        (&["artifact", "images", "push", "-f", "cluster.yaml"], true),
        (&["artifact", "import"], true),
        (&["artifact", "verify"], false),
    ];
    for (command, needs_key) in commands {
        let keys = [&["--public-key", "missing"][..], &["--public-key", "no-key"], &[]];
        for key in keys.into_iter().filter(|key| needs_key || !key.is_empty()) {
            let words = [command, &["-a", &bundle], key].concat();
            let output = kk(directory.path(), &words);
            let shown = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{words:?}: {shown}");
            let said = shown.contains(if key.is_empty() { "no public key" } else { "cannot use the key" });
            assert!(said && shown.contains("hint: "), "{words:?}: {shown}");
        }
    }
}

/// Runs `kk create config --from-cluster` with a kubectl that runs this script in the directory.
fn from_cluster(directory: &Path, kubectl: &str, words: &[&str]) -> String {
    use std::os::unix::fs::PermissionsExt;
    let bin = directory.join("bin");
    fs::create_dir_all(&bin).expect("the directory can be made");
    if !kubectl.is_empty() {
        let file = bin.join("kubectl");
        fs::write(&file, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{kubectl}\n"))
            .expect("kubectl can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("kubectl can be made a program");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_kk"));
    command.args(["create", "config", "--from-cluster"]).args(words).env("PATH", &bin).env("HOME", directory);
    let output = command.env_remove("KUBECONFIG").current_dir(directory).output().expect("kk starts");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    format!("exit {}\n{stdout}{stderr}", output.status.code().expect("kk ended by itself"))
}

#[test]
fn the_file_of_a_running_cluster_is_written_from_the_answers_of_kubectl() {
    let directory = tempfile::tempdir().unwrap();
    let answers = include_str!("../../src/commands/create_config/from_cluster/answers/kk_flannel.json");
    let answers: serde_json::Value = serde_json::from_str(answers).unwrap();
    for (name, answer) in answers.as_object().unwrap() {
        fs::write(directory.path().join(name), answer.to_string()).unwrap();
    }
    let kubectl = "case \"$*\" in
        '--kubeconfig admin.conf --request-timeout 30s get nodes -o json') exec cat nodes ;;
        *' -n kube-system configmaps kubeadm-config kubelet-config kube-proxy --ignore-not-found '*) exec cat configs ;;
        *' daemonsets -A '*) exec cat daemonSets ;;
        *' pods -n kube-system '*) exec cat pods ;;
        *' -n kube-flannel configmap kube-flannel-cfg --ignore-not-found '*) exec cat plugin ;;
        *) echo \"unexpected: $*\" >&2; exit 1 ;;
        esac";
    let shown = from_cluster(directory.path(), kubectl, &["--kubeconfig", "admin.conf", "--name", "prod"]);
    assert_eq!(
        shown,
        "exit 0\nwrote config-prod.yaml\nfill in the SSH data of your hosts, then run: kk create cluster -f \
         config-prod.yaml --dry-run\n"
    );
    let text = fs::read_to_string(directory.path().join("config-prod.yaml")).unwrap();
    assert!(text.contains("name: prod\n") && text.contains("plugin: flannel\n"), "{text}");
}

#[test]
fn a_cluster_that_does_not_answer_is_reported_with_what_to_do() {
    for (kubectl, words) in [
        ("", ["cannot run kubectl", "put kubectl into a directory of PATH"]),
        (
            "echo 'dial tcp 192.0.2.1:6443: connect: connection refused' >&2; exit 1",
            [
                "cannot get the nodes of the cluster of a.conf: dial tcp",
                "specify another one with --kubeconfig",
            ],
        ),
        (
            "echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1",
            ["nodes is forbidden", "use the kubeconfig of an administrator"],
        ),
        ("echo no JSON", ["cannot get the nodes", "expected ident"]),
        ("echo '{\"items\": []}'", ["kubeadm did not make this cluster", "write the file by hand"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let shown = from_cluster(directory.path(), kubectl, &["--kubeconfig", "a.conf"]);
        assert!(
            shown.starts_with("exit 3\nerror: ") && words.iter().all(|word| shown.contains(word)),
            "{shown}"
        );
        assert!(!directory.path().join("config-sample.yaml").exists(), "{kubectl}");
    }
}
