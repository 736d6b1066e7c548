//! A target under libFuzzer. `FUZZ_TARGET` names it at compile time, so that the linker leaves out the code of the
//! others: libFuzzer reads every counter of the program after each execution.
//!
//! Without a target, the program writes the inputs of all targets into the folder that `FUZZ_SEEDS` names, each into a
//! folder with the name of its target.
#![no_main]

use wirelab_fuzz::find;

const READ: Option<fn(&[u8])> = match option_env!("FUZZ_TARGET") {
    Some(name) => match find(name) {
        Some(target) => Some(target.read),
        None => panic!("FUZZ_TARGET is not the name of a target"),
    },
    None => None,
};

libfuzzer_sys::fuzz_target!(init: begin(), |input: &[u8]| {
    if let Some(read) = READ {
        read(input);
    }
});

fn begin() {
    if READ.is_none() {
        wirelab_fuzz::write(std::env::var_os("FUZZ_SEEDS").expect("FUZZ_SEEDS names a folder").as_ref());
        std::process::exit(0);
    }
}
