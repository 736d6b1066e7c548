//! Validates HTTP Archives with har-validator from npm, as Debian packages it.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::{Skip, skip_part};

/// Debian's folder for packages of Node.js. Node.js from another source does not search it.
const MODULES: &str = "/usr/share/nodejs";

/// JavaScript that prints the faults of the archive on standard input.
const VALIDATE: &str = "
  const archive = JSON.parse(require('fs').readFileSync(0, 'utf8'));
  require('har-validator').har(archive).catch(found => {
    for (const { dataPath, message } of found.errors) console.log(dataPath, message);
    process.exit(1);
  });";

/// Demands that an archive is valid HAR 1.2. Without a validator this part of the test is skipped.
#[track_caller]
pub fn assert_is_valid(path: &Path) {
    if !is_there() {
        skip_part(missing());
        return;
    }
    assert_eq!(faults(path), None, "{}", path.display());
}

/// The reason for a skip if the validator is not installed.
pub fn missing() -> Skip {
    Skip::MissingProgram {
        program: "har-validator".to_owned(),
        remedy: "apt-get install node-har-validator".to_owned(),
    }
}

/// Whether the validator is installed.
pub fn is_there() -> bool {
    Path::new(MODULES).join("har-validator").exists()
}

/// The validator's message; `None` if it accepts the archive.
pub fn faults(path: &Path) -> Option<String> {
    let mut node = Command::new("node");
    node.args(["-e", VALIDATE]).env("NODE_PATH", MODULES).stdin(File::open(path).unwrap());
    let output = node.output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    (!output.status.success()).then_some(said)
}
