//! `deploy/archive.py` builds the image of a Containerfile without a container engine, and `deploy/endpoints.py` adds
//! endpoints with all their dependencies. `cluster.rs` shows that a cluster runs the image.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use wirelab_testkit::{Said, Skip, program, said, skip};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A folder with the files of wirelab's image; this text is the program.
fn context(program: &str) -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("wirelab"), program).unwrap();
    fs::set_permissions(folder.path().join("wirelab"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(root().join("deploy/nsswitch.conf"), folder.path().join("nsswitch.conf")).unwrap();
    fs::create_dir(folder.path().join("root")).unwrap();
    folder
}

fn archive(containerfile: &Path, context: &Path) -> Said {
    let mut command = Command::new(root().join("deploy/archive.py"));
    command.args([containerfile, context]).arg("localhost/wirelab:dev").arg(context.join("image.tar"));
    said(command.output().unwrap())
}

/// The archive of wirelab's own image.
fn image(context: &Path) -> PathBuf {
    archive(&root().join("deploy/Containerfile"), context).with_status(0);
    context.join("image.tar")
}

#[track_caller]
fn tar(args: &[&str], archive: &Path) -> String {
    said(Command::new("tar").args(args).arg("--file").arg(archive).env("TZ", "UTC").output().unwrap())
        .with_status(0)
        .out
}

#[test]
fn the_same_contents_make_the_same_archive_and_others_another() {
    let first = context("a program");
    let later = context("a program");
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::options().append(true).open(later.path().join("wirelab")).unwrap().set_modified(hour_ago).unwrap();
    let other = context("another program");
    let [first, later, other] = [&first, &later, &other].map(|folder| fs::read(image(folder.path())).unwrap());
    assert!(first == later, "time or place are in the archive");
    assert!(first != other);
}

#[test]
fn engines_find_what_the_containerfile_says_under_the_digests_of_the_blobs() {
    let folder = context("a program");
    let beside = folder.path().join("root/endpoints/mine");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("endpoint.toml"), "").unwrap();
    let unpacked = tempdir().unwrap();
    tar(&["--extract", "--directory", unpacked.path().to_str().unwrap()], &image(folder.path()));
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(unpacked.path().join(path)).unwrap())
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let blob = |entry: &Value| format!("blobs/{}", entry["digest"].as_str().unwrap().replace(':', "/"));

    let entry = &read("index.json")["manifests"][0];
    assert_eq!(entry["annotations"]["io.containerd.image.name"], "localhost/wirelab:dev");
    let manifest = read(&blob(entry));
    let (config, layer) = (blob(&manifest["config"]), blob(&manifest["layers"][0]));
    let docker = json!([{ "Config": config, "Layers": [layer], "RepoTags": ["localhost/wirelab:dev"] }]);
    assert_eq!(read("manifest.json"), docker, "what Docker reads says the same");
    let config = read(&config);
    let environment = [
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "WIRELAB_ENDPOINTS=/endpoints",
        "WIRELAB_CARRIED=off",
        "XDG_CACHE_HOME=/cache",
    ];
    assert_eq!(config["config"], json!({ "User": "65532:65532", "Entrypoint": ["/wirelab"], "Env": environment }));
    assert_eq!(config["rootfs"]["diff_ids"], json!([manifest["layers"][0]["digest"]]));

    for path in fs::read_dir(unpacked.path().join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()) {
        let sum = said(Command::new("sha256sum").arg(&path).output().unwrap()).with_status(0).out;
        assert!(sum.starts_with(path.file_name().unwrap().to_str().unwrap()), "{sum}");
    }
    let listed = tar(&["--list", "--verbose", "--numeric-owner"], &unpacked.path().join(layer));
    let files: Vec<Vec<_>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let brief: Vec<_> = files.iter().map(|words| (words[0], words[1], words[3], words[5])).collect();
    let dawn = "1970-01-01";
    assert_eq!(
        brief,
        [
            ("drwxr-xr-x", "0/0", dawn, "endpoints/"),
            ("drwxr-xr-x", "0/0", dawn, "endpoints/mine/"),
            ("-rw-r--r--", "0/0", dawn, "endpoints/mine/endpoint.toml"),
            ("drwxr-xr-x", "0/0", dawn, "etc/"),
            ("-rw-r--r--", "0/0", dawn, "etc/nsswitch.conf"),
            ("-rwxr-xr-x", "0/0", dawn, "wirelab"),
        ]
    );
}

#[test]
fn an_unsupported_instruction_is_refused_and_leaves_no_archive() {
    let folder = context("a program");
    for instruction in ["RUN true", "FROM debian", "COPY --chown=1 wirelab /wirelab", "ENTRYPOINT wirelab", "ENV PATH"]
    {
        let containerfile = folder.path().join("Containerfile");
        fs::write(&containerfile, format!("FROM scratch\n{instruction}\n")).unwrap();
        archive(&containerfile, folder.path()).with_status(2).complains(&["expected FROM scratch", instruction]);
    }
    fs::write(folder.path().join("Containerfile"), "FROM scratch\nCOPY absent /absent\n").unwrap();
    archive(&folder.path().join("Containerfile"), folder.path()).with_status(1).complains(&["absent"]);
    assert!(!folder.path().join("image.tar").exists());
}

/// An endpoint in Python with dependencies, in an endpoint folder of its own.
fn endpoint(folder: &Path, install: &str) -> PathBuf {
    let (mine, shared) = (folder.join("mine"), folder.join("_shared"));
    for folder in [&mine, &shared] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(shared.join("words.py"), "NAME = 'mine'\n").unwrap();
    // Links to shared code, as real endpoints have them, and one broken link.
    symlink("../_shared/words.py", mine.join("words.py")).unwrap();
    symlink("../_shared/gone.py", mine.join("gone.py")).unwrap();
    fs::write(mine.join(".hidden"), "left out").unwrap();
    let manifest = format!(
        "name = 'mine'\ncommand = ['python3', '-B', 'endpoint.py']\n\
         [install]\nlanguage = 'Python'\nlibrary = 'none'\nset = 'full'\nwith = ['../_shared']\n{install}"
    );
    fs::write(mine.join("endpoint.toml"), manifest).unwrap();
    let program = "import ctypes, json, ssl\n\
                   import words\n\
                   print(json.dumps({'contract': 1, 'name': words.NAME, 'library': ssl.OPENSSL_VERSION, 'version': '1', \
                   'language': 'Python'}))\n";
    fs::write(mine.join("endpoint.py"), program).unwrap();
    folder.to_owned()
}

/// Fills the folder of an image with the endpoint `mine`.
fn fill(endpoints: &Path, image: &Path) -> Said {
    let mut command = Command::new(root().join("deploy/endpoints.py"));
    command.arg(program()).args([image, Path::new("mine")]).current_dir(endpoints);
    said(command.env("WIRELAB_ENDPOINTS", endpoints).output().unwrap())
}

#[test]
fn an_endpoint_runs_in_the_image_with_nothing_but_what_is_there() {
    let (endpoints, image) = (tempdir().unwrap(), tempdir().unwrap());
    let modules = tempdir().unwrap();
    fs::write(modules.path().join("one.conf"), "").unwrap();
    let folder = modules.path().to_str().unwrap();
    let needs = format!("needs = [{{ program = 'python3' }}, {{ program = 'setpriv' }}, {{ program = '{folder}' }}]");
    let endpoints = endpoint(endpoints.path(), &needs);
    fill(&endpoints, image.path()).with_status(0);
    assert!(image.path().join("endpoints/_shared/words.py").is_file());
    assert!(image.path().join("usr/bin/setpriv").is_file(), "what else its manifest names");
    assert!(image.path().join(format!("{}/one.conf", folder.trim_start_matches('/'))).is_file(), "a folder, too");
    assert!(!image.path().join("endpoints/mine/.hidden").exists());
    assert!(image.path().join("endpoints/mine/words.py").symlink_metadata().unwrap().is_file());
    let inside = ["--map-root-user", "--root", image.path().to_str().unwrap(), "--wd", "/endpoints/mine"];
    let mut command = Command::new("unshare");
    let command = command.args(inside).args(["/usr/bin/python3", "-B", "endpoint.py", "describe"]);
    let described = match command.output() {
        Ok(output) => said(output),
        Err(error) => {
            let remedy = format!("apt-get install util-linux ({error})");
            return skip(Skip::MissingProgram { program: "unshare".to_owned(), remedy });
        }
    };
    if described.err.contains("unshare failed") {
        return skip(Skip::KernelLacks { what: "a user namespace".to_owned(), why: described.err });
    }
    assert!(described.with_status(0).out.contains("OpenSSL"));
}

#[test]
fn an_endpoint_that_cannot_be_put_into_an_image_is_named_with_the_reason() {
    let (endpoints, image) = (tempdir().unwrap(), tempdir().unwrap());
    let endpoints = endpoint(endpoints.path(), "needs = [{ program = 'no-such-program' }]");
    fill(&endpoints, image.path()).with_status(2).complains(&["`mine` cannot be used", "no-such-program"]);
    let manifest = endpoints.join("mine/endpoint.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.split("[install]").next().unwrap()).unwrap();
    fill(&endpoints, image.path()).with_status(2).complains(&["`mine` has no table [install]"]);
}
