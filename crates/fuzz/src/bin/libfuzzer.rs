//! The target that `FUZZ_TARGET` names, under libFuzzer. With `FUZZ_SEEDS=FOLDER` it writes the inputs of all targets
//! into that folder instead, each into a folder with the name of its target.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use wirelab_fuzz::{Target, find, targets};

static TARGET: OnceLock<&'static Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: begin(), |input: &[u8]| {
    if let Some(target) = TARGET.get() {
        (target.read)(input);
    }
});

fn begin() {
    if let Some(folder) = std::env::var_os("FUZZ_SEEDS") {
        write(Path::new(&folder));
        std::process::exit(0);
    }
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let Some(target) = find(&name) else {
        let names: Vec<_> = targets().map(|target| target.name).collect();
        eprintln!("FUZZ_TARGET is `{name}`, which is no target; these are: {}", names.join(" "));
        std::process::exit(2);
    };
    TARGET.get_or_init(|| target);
}

fn write(folder: &Path) {
    for target in targets() {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        for (number, input) in target.inputs().iter().enumerate() {
            std::fs::write(folder.join(format!("{number:04}")), input).expect("the input can be written");
        }
    }
}
