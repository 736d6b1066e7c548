//! The messages for wrong study files.

use wirelab_plan::{MAX_TEXT, Names, StudyError, check_names, find, parse};

const HEAD: &str = "name = \"mine\"\ntitle = \"t\"\nquestion = \"q\"\n";
const COMPARE: &str = "[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n";
const FACTORS: &str = "[factors]\nprotocol = [\"h1\", \"h2\"]\n";

fn error(text: &str) -> StudyError {
    parse(text, "mine.toml").expect_err(text)
}

/// The whole message for a study that is correct except for `rest`.
fn message(rest: &str) -> String {
    error(&format!("{HEAD}{rest}")).to_string()
}

#[test]
fn a_misspelt_factor_is_named_with_its_place_and_the_nearest_setting() {
    let text = message(&format!("[factors]\nprotocl = [\"h1\"]\n{COMPARE}"));
    let expected = "mine.toml:5:1: unknown factor `protocl`: a list of values varies the setting of that name, but no \
                    setting has this name. For a factor of your own, name its levels and their settings: `protocl = { few \
                    = { workers = 1 }, many = { workers = 10 } }`; did you mean `protocol`?\n  |\n5 | protocl = [\"h1\"]\n  | ^^^^^^^";
    assert_eq!(text, expected);
}

#[test]
fn a_misspelt_value_of_a_factor_is_named_with_the_nearest_one() {
    let text = message(&format!("[factors]\nprotocol = [\"h1\", \"http/2\"]\n{COMPARE}"));
    let expected = "mine.toml:5:19: `http/2` is no level of `protocol`: unknown value `http/2`, expected one of `udp`, `tcp`, \
                    `tls`, `quic`, `h1c`, `h1`, `h2c`, `h2`, `h3`, `grpcc`, `grpc`; did you mean `h2`?\n  |\n5 | protocol = \
                    [\"h1\", \"http/2\"]\n  |                   ^^^^^^^^";
    assert_eq!(text, expected);
}

#[test]
fn a_misspelt_unit_is_named_with_the_nearest_quantity() {
    let text = message(&format!("[workload]\nduration = \"200 mss\"\n{FACTORS}{COMPARE}"));
    let expected = "mine.toml:5:12: `200 mss` is not a length of time such as `250 us`, `10 ms`, `1.5 s` or `2 min`; did you \
                    mean `200 ms`?\n  |\n5 | duration = \"200 mss\"\n  |            ^^^^^^^^^";
    assert_eq!(text, expected);
    let text = message(&format!("{FACTORS}payload = [\"1 KiB\", \"32 Kib\"]\n{COMPARE}"));
    assert!(
        text.starts_with("mine.toml:6:21: `32 Kib` is no level of `payload`")
            && text.contains("did you mean `32 KiB`?"),
        "{text}"
    );
}

#[test]
fn a_quantity_without_a_unit_is_refused_with_the_remedy() {
    let text = message(&format!("[workload]\npayload = 1024\n{FACTORS}{COMPARE}"));
    assert!(
        text.starts_with(
            "mine.toml:5:11: found integer `1024`, expected text in quotes: `\"1024\"`, or if it is a quantity, with its unit: `\"1024 ms\"`"
        ),
        "{text}"
    );
}

/// Each case: the text after the head, the place of the error, and words of the message.
#[test]
fn every_mistake_has_its_place_and_the_remedy() {
    let ok = format!("{FACTORS}{COMPARE}");
    let test = "[[claims]]\nid = \"C1\"\ntext = \"x\"\n[[claims.tests]]\nmetric = \"m\"\nexpect = \"> 1\"\n";
    // A claim with an additional line, a test with these selectors, and an additional line of the test.
    let each = |line: &str, of: &str, more: &str| {
        let claim = test.replace("text = \"x\"\n", &format!("text = \"x\"\n{line}\n"));
        format!("{ok}{claim}of = {of}\n{more}")
    };
    let cases: &[(String, (usize, usize), &[&str])] = &[
        // Keys
        (format!("quesion = 1\n{ok}"), (4, 1), &["unknown key `quesion`", "`question`?"]),
        (format!("payload = \"1 KiB\"\n{ok}"), (4, 1), &["`payload`", "a setting", "[workload]"]),
        (format!("[workload]\nworker = 3\n{ok}"), (5, 1), &["unknown key `worker`", "`workers`?"]),
        (format!("{FACTORS}kind = {{ a = {{ wokers = 3 }} }}\n{COMPARE}"), (6, 16), &["`wokers`", "`workers`?"]),
        (FACTORS.to_owned(), (1, 1), &["the key `compare` is missing"]),
        // Types and syntax
        (format!("seed = \"x\"\n{ok}"), (4, 8), &["expected a whole number"]),
        (
            format!("[factors]\nprotocol = \"h1\"\n{COMPARE}"),
            (5, 12),
            &["a list of values, or a table of named levels"],
        ),
        (format!("[workload\n{ok}"), (4, 10), &["expected `]`"]),
        (format!("[workload]\nconnections = \"per-requst\"\n{ok}"), (5, 15), &["per-request"]),
        // Factors
        (format!("{FACTORS}payload = []\n{COMPARE}"), (6, 11), &["`payload` has no levels"]),
        (format!("{FACTORS}payload = [\"1 KiB\", \"1 KiB\"]\n{COMPARE}"), (6, 21), &["`1 KiB` twice"]),
        (
            format!("{FACTORS}payload = [\"1 KiB\", \"1024 B\"]\n{COMPARE}"),
            (6, 21),
            &["`1 KiB` and `1024 B`", "the same value"],
        ),
        (format!("{FACTORS}payload = [[1]]\n{COMPARE}"), (6, 12), &["a level is text in quotes, a finite number"]),
        (format!("{FACTORS}rate = [nan]\n{COMPARE}"), (6, 9), &["a level is text in quotes, a finite number"]),
        (format!("{FACTORS}payload = [\"9 GiB\"]\n{COMPARE}"), (6, 12), &["`payload` is 9 GiB", "to 1 GiB"]),
        (format!("{FACTORS}[factors.k]\na = {{ workers = 0 }}\n{COMPARE}"), (7, 17), &["`workers` is 0", "from 1"]),
        (
            format!("{FACTORS}workers = [1]\nk = {{ a = {{ workers = 2 }} }}\n{COMPARE}"),
            (7, 1),
            &["both set `workers`"],
        ),
        (format!("{FACTORS}requests = [1]\nduration = [\"1 s\"]\n{COMPARE}"), (7, 1), &["both set `duration`"]),
        (format!("[workload]\nprotocol = \"h1\"\n{ok}"), (5, 1), &["fixed in `[workload]` and varied in `[factors]`"]),
        (format!("[factors]\nworkers = [1, 2]\n{COMPARE}"), (4, 2), &["no protocol"]),
        // Workload
        (format!("[workload]\nrequests = 5\nduration = \"1 s\"\n{ok}"), (6, 12), &["both `requests` and `duration`"]),
        (format!("[workload]\nrate = \"5/s\"\npause = \"1 s\"\n{ok}"), (5, 8), &["both `rate` and a pause"]),
        (format!("[workload]\npause = \"2 s\"\npause_max = \"1 s\"\n{ok}"), (6, 13), &["below `pause`"]),
        // Comparison and blocks
        (
            format!("{FACTORS}[compare]\nfactor = \"protcol\"\nbaseline = \"h1\""),
            (7, 10),
            &["no factor `protcol`", "`protocol`?"],
        ),
        (
            format!("{FACTORS}[compare]\nfactor = \"protocol\"\nbaseline = \"h11\""),
            (8, 12),
            &["one of `h1`, `h2`", "`h1`?"],
        ),
        (format!("{ok}metrics = []\n"), (9, 11), &["no metrics"]),
        (format!("{ok}margin = \"0 %\"\n"), (9, 10), &["`margin` is 0 %", "above 0 %"]),
        (format!("{ok}[blocks]\nprecision = \"100 %\"\n"), (10, 13), &["below 100 %"]),
        (format!("{ok}[blocks]\nmin = 0\n"), (10, 7), &["`min` is 0"]),
        (format!("{ok}[blocks]\nmin = 20\nmax = 10\n"), (11, 7), &["at least 20", "at most 10"]),
        (format!("{ok}[blocks]\nmin = 40\n"), (9, 2), &["at least 40", "at most 30"]),
        // Selectors
        (format!("{ok}[[exclude]]\nprotocl = \"h1\"\n"), (10, 1), &["no factor `protocl`", "`protocol`?"]),
        (format!("{ok}[[exclude]]\nprotocol = [\"h1\", \"h3\"]\n"), (10, 19), &["`h3` is not a level of `protocol`"]),
        (format!("{ok}[blocks]\ngive_up_after = 0\n"), (10, 17), &["`give_up_after` is 0"]),
        (format!("{ok}[[exclude]]\n"), (9, 1), &["would leave out every cell"]),
        (
            format!("{ok}[presets.s]\nexclude = [{{ protocol = \"h4\" }}]\n"),
            (10, 25),
            &["`h4` is not a level of `protocol`"],
        ),
        // Adjustments and figures
        (format!("{ok}[[adjust]]\ncells = {{ protocol = \"h4\" }}\nset = {{ workers = 2 }}\n"), (10, 22), &["`h1`?"]),
        (format!("{ok}[[adjust]]\ncells = {{}}\nset = {{ workers = 2 }}\n"), (10, 1), &["would change every cell"]),
        (format!("{ok}[[adjust]]\ncells = {{ protocol = \"h2\" }}\nset = {{}}\n"), (11, 1), &["sets nothing"]),
        (
            format!("{ok}[[adjust]]\ncells = {{ protocol = \"h2\" }}\nset = {{ workers = 0 }}\n"),
            (11, 19),
            &["`workers` is 0"],
        ),
        (
            format!("{ok}[[adjust]]\ncells = {{ protocol = \"h2\" }}\nset = {{ protocol = \"h1\" }}\n"),
            (11, 9),
            &["`protocol` is a factor"],
        ),
        (format!("{ok}[[figures]]\ntitle = \"t\"\nrows = \"protcol\"\n"), (11, 8), &["no factor `protcol`"]),
        (
            format!("{ok}[[figures]]\ntitle = \"t\"\nrows = \"protocol\"\npool = [\"protocol\"]\n"),
            (12, 8),
            &["be both the rows and pooled"],
        ),
        (format!("{ok}{test}of = [{{ protocol = \"h4\" }}]\n"), (15, 20), &["`h4` is not a level", "`h1`?"]),
        (format!("{ok}{test}of = [{{}}, {{}}, {{}}]\n"), (15, 6), &["one, two or four selectors", "this one has 3"]),
        (format!("{ok}{test}of = [{{}}]\nwhere = {{ payload = \"1\" }}\n"), (16, 11), &["no factor `payload`"]),
        (format!("{ok}[[claims]]\nid = \"C1\"\ntext = \"x\"\n"), (10, 1), &["no tests", "`untested`"]),
        (each("needs = \"some\"", "[{}]", ""), (12, 9), &["`each` is missing"]),
        (each("needs = \"many\"", "[{}]", ""), (12, 9), &["`many`", "`most`"]),
        (each("each = { protocol = \"h2\" }", "[{}]", ""), (12, 1), &["a list of its levels"]),
        (each("each = { protocol = [\"h2c\"] }", "[{}]", ""), (12, 22), &["`h2c` is not a level", "`h2`?"]),
        (each("each = { protocol = [\"h2\", \"h2\"] }", "[{}]", ""), (12, 28), &["`h2` is listed twice"]),
        (
            each("each = { protocol = [\"h2\"] }", "[{ protocol = \"h1\" }]", ""),
            (16, 6),
            &["the same for each `protocol`", "without `protocol`"],
        ),
        (
            each("each = { protocol = [\"h2\"] }", "[{}]", "where = { protocol = \"h1\" }\n"),
            (17, 1),
            &["leave `protocol` out of `where`"],
        ),
        (each("", "[{}, {}]", "with = \"n\"\n"), (16, 6), &["needs one selector", "has 2"]),
        (each("", "[{ protocol = [\"h1\", \"h2\"] }]", "with = \"n\"\n"), (16, 6), &["5 cells or more", "names 2"]),
        (
            format!("{ok}[[published]]\ncell = {{ protocol = \"h2c\" }}\nmetric = \"m\"\nvalue = 1\nnote = \"n\"\n"),
            (10, 21),
            &["`h2c` is not a level", "`h2`?"],
        ),
        // Presets
        (format!("{ok}[presets.smoke]\nmin_blcks = 2\n"), (10, 1), &["`min_blcks`", "`min_blocks`?"]),
        (format!("{ok}[presets.s.workload]\nworkers = 0\n"), (10, 11), &["`workers` is 0"]),
        (
            format!("{ok}[presets.s.factors]\npayloads = [\"1 B\"]\n"),
            (10, 1),
            &["unknown factor `payloads`", "`payload`?"],
        ),
        (format!("{ok}[presets.s.factors]\nprotocol = [\"h3\"]\n"), (9, 10), &["with the preset `s`", "baseline `h1`"]),
        (
            format!("{ok}[presets.s.workload]\nprotocol = \"h1\"\n"),
            (9, 10),
            &["with the preset `s`", "varied in `[factors]`"],
        ),
        (format!("{ok}[presets.default]\n"), (9, 10), &["`default` stands for the study as it is written"]),
    ];
    let mut wrong = Vec::new();
    for (rest, place, words) in cases {
        let error = error(&format!("{HEAD}{rest}"));
        let text = error.to_string();
        if error.position() != Some(*place) || !words.iter().all(|word| text.contains(word)) {
            wrong.push(format!("expected {place:?} {words:?} in:\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn an_invalid_name_is_refused_with_a_valid_one() {
    let text = error(&format!("name = \"My Study\"\ntitle = \"t\"\nquestion = \"q\"\n{FACTORS}{COMPARE}")).to_string();
    assert!(text.starts_with("mine.toml:1:8: ") && text.contains("did you mean `my-study`?"), "{text}");
}

#[test]
fn an_empty_file_is_refused_with_the_parts_of_a_study() {
    for text in ["", "  \n\n", "# only a comment\n"] {
        let error = error(text).to_string();
        assert!(
            error.starts_with("mine.toml:1:1: the study file is empty") && error.contains("`[compare]`"),
            "{error}"
        );
    }
}

#[test]
fn a_huge_file_is_refused_by_its_size() {
    let error = error(&"#".repeat(MAX_TEXT + 1)).to_string();
    assert!(error.contains("1048577 bytes") && error.contains("at most 1048576"), "{error}");
}

#[test]
fn a_huge_matrix_is_refused_before_it_is_built() {
    let many = (1..=1000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let factors = format!("{FACTORS}workers = [{many}]\nstreams = [{many}]\nwarm_up = [{many}]\nrequests = [{many}]\n");
    let text = message(&format!("{factors}{COMPARE}"));
    assert!(text.starts_with("mine.toml:4:2: the factors make 2000000000000 cells, at most 10000"), "{text}");
    let factors: String = (0..33).map(|n| format!("f{n} = {{ a = {{}} }}\n")).collect();
    assert!(message(&format!("{FACTORS}{factors}{COMPARE}")).contains("34 factors, at most 32"));
}

#[test]
fn a_message_stays_short_whatever_it_quotes() {
    let long = "x".repeat(MAX_TEXT / 2);
    for rest in [
        format!("{long} = 1"),
        format!("[workload]\nprotocol = \"{long}\""),
        format!("[factors]\n{long} = [1]\n{COMPARE}"),
    ] {
        assert!(message(&rest).len() < 2000);
    }
}

#[test]
fn nesting_without_end_is_an_error_and_no_crash() {
    let deep = format!("{HEAD}[factors]\nprotocol = {}", "[".repeat(500_000));
    assert!(parse(&deep, "mine.toml").is_err());
}

#[test]
fn unknown_metrics_are_found_with_the_nearest_known_one() {
    let text = format!("{HEAD}{FACTORS}{COMPARE}metrics = [\"goodput\", \"respose_p90\"]\n");
    let study = parse(&text, "mine.toml").unwrap();
    let check = |metrics| check_names(&study, &Names { labs: &["loopback"], observers: &[], metrics });
    let error = check(&["goodput", "response_p90"]).unwrap_err();
    assert_eq!(error.to_string(), "`compare.metrics[1]`: unknown metric `respose_p90`; did you mean `response_p90`?");
    let located = error.located(&text, "mine.toml");
    assert_eq!((located.position(), located.suggestion()), (Some((9, 23)), Some("response_p90")));
    assert!(check(&["goodput", "respose_p90"]).is_ok());
}

#[test]
fn unknown_labs_and_observers_are_found_where_they_stand() {
    let names = Names { labs: &["loopback", "netns"], observers: &["cpu", "drops"], metrics: &["response_median"] };
    for (line, message, position) in [
        ("lab = \"netn\"", "`lab`: unknown lab `netn`; did you mean `netns`?", (4, 7)),
        ("lab = \"xyz\"", "`lab`: unknown lab `xyz`, expected one of `loopback`, `netns`", (4, 7)),
        (
            "observers = [\"cpu\", \"dorps\"]",
            "`observers[1]`: unknown observer `dorps`; did you mean `drops`?",
            (4, 21),
        ),
    ] {
        let text = format!("{HEAD}{line}\n{FACTORS}{COMPARE}");
        let error = check_names(&parse(&text, "mine.toml").unwrap(), &names).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.located(&text, "mine.toml").position(), Some(position));
    }
}

#[test]
fn a_misspelt_built_in_study_is_found() {
    let text = find("qick").unwrap_err().to_string();
    assert_eq!(
        text,
        "there is no built-in study `qick`, only one of `quick`, `grpc`, `grpc-balancing`, `null`, `cloud-quic`, `conditions`, `cluster-http3`, \
         `public-sites`, `pairs`, `observers`, `page-load`; a file is given by its path; did you mean `quick`?"
    );
}
