use std::path::Path;
use wirelab_model::endpoint::Endpoint;
fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../endpoints/_template").canonicalize().unwrap();
    let template = Endpoint {
        name: "_template".into(),
        command: vec!["python3".into(), "-B".into(), "endpoint.py".into()],
        environment: Default::default(),
        folder: Some(folder),
    };
    let builtin = |p: String| Endpoint {
        name: "builtin".into(),
        command: vec![p, "endpoint".into()],
        environment: Default::default(),
        folder: None,
    };
    let pick = |word: String| if word == "template" { template.clone() } else { builtin(word) };
    let mut args = std::env::args().skip(1);
    let (subject, reference) = (pick(args.next().unwrap()), pick(args.next().unwrap()));
    let scratch = tempfile::tempdir().unwrap();
    let start = std::time::Instant::now();
    let report = wirelab_suite::check(&subject, &reference, scratch.path(), &mut |case| {
        println!("{:7.3} {case}", start.elapsed().as_secs_f64())
    });
    println!("{} passed, {} failed, {} n/a", report.passed(), report.failed(), report.not_applicable());
}
