//! Files of targets as vegeta reads them: a line with method and URL, then header fields, then `@FILE` with the body.
//! Blank lines and lines that begin with `#` separate targets.

use std::path::Path;

use super::Found;
use crate::failure::{Failure, Result};

/// Reads a file of targets.
pub(super) fn parse(text: &str, path: &Path) -> Result<Vec<Found>> {
    let wrong = |line: usize, why: String| Failure::input(format!("{}:{line}: {why}", path.display()));
    let mut found: Vec<Found> = Vec::new();
    let mut is_open = false;
    for (line, content) in (1..).zip(text.lines().map(str::trim)) {
        if content.is_empty() || content.starts_with('#') {
            is_open &= content.starts_with('#');
            continue;
        }
        let of_target = found.last_mut().filter(|_| is_open);
        // A further target may follow without a blank line.
        match (of_target, first_line(content)) {
            (_, Some((method, url))) => {
                let mut one = Found { url: url.to_owned(), ..Found::default() };
                one.request.method = Some(method.to_owned());
                found.push(one);
                is_open = true;
            }
            (Some(one), None) => match (content.strip_prefix('@'), content.split_once(':')) {
                (Some(file), _) if one.request.body_file.is_some() => {
                    return Err(wrong(line, format!("`@{file}` is a second body of this target; remove one")));
                }
                (Some(file), _) => one.request.body_file = Some(file.into()),
                (None, Some((name, value))) => one.request.add_field(name.trim(), value.trim().to_owned()),
                (None, None) => {
                    let why =
                        "expected a header field such as `Accept: */*`, `@FILE`, or a target such as `GET https://…`";
                    return Err(wrong(line, why.to_owned()));
                }
            },
            (None, None) => {
                let why = format!("`{content}` is not a target such as `GET https://localhost:8443/`");
                return Err(wrong(line, why));
            }
        }
    }
    if found.is_empty() {
        return Err(wrong(1, "the file has no target such as `GET https://localhost:8443/`".to_owned()));
    }
    Ok(found)
}

/// Method and URL of the first line of a target.
fn first_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(char::is_whitespace)?;
    let is_method = !method.is_empty() && method.chars().all(|c| c.is_ascii_uppercase());
    (is_method && url.contains("://")).then(|| (method, url.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "targets.txt";

    #[test]
    fn targets_have_methods_fields_and_bodies() {
        let text = "# two targets\nGET https://a.test/x\nAccept: */*\nX: 1\nX: 2\n\nPOST https://a.test/y?z=1\n@body.json\nGET https://a.test/\n";
        let found = parse(text, Path::new(PATH)).unwrap();
        let urls: Vec<_> = found.iter().map(|one| (one.request.method(), one.url.as_str())).collect();
        assert_eq!(urls, [("GET", "https://a.test/x"), ("POST", "https://a.test/y?z=1"), ("GET", "https://a.test/")]);
        assert_eq!(found[0].request.field("x").unwrap().all(), ["1", "2"]);
        assert_eq!(found[1].request.body_file.as_deref(), Some(Path::new("body.json")));
    }

    #[test]
    fn a_damaged_file_is_refused_with_its_line() {
        for (text, words) in [
            ("", ":1: the file has no target"),
            ("GET /x\n", ":1: `GET /x` is not a target"),
            ("GET https://a.test/\nnothing\n", ":2: expected a header field"),
            ("POST https://a.test/\n@a\n@b\n", ":3: `@b` is a second body"),
            ("GET https://a.test/\n\nAccept: x\n", ":3: `Accept: x` is not a target"),
        ] {
            let why = format!("{:?}", parse(text, Path::new(PATH)).unwrap_err());
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
