//! Tells the crate with which optimisation it is compiled.

fn main() {
    let level = std::env::var("OPT_LEVEL").expect("cargo sets OPT_LEVEL for build scripts");
    println!("cargo::rustc-env=WIRELAB_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
