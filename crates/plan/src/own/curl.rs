//! A command line of curl as a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use wirelab_model::request::WrittenRequest;

type Result<T = ()> = std::result::Result<T, CurlError>;

/// Why a command line is no request that wirelab can send, with the remedy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurlError {
    /// A quote has no end.
    #[error("--curl: a quote of the command line is not closed")]
    OpenQuote,
    /// The first word is another one.
    #[error("--curl: the command line begins with `{0}` instead of `curl`")]
    OtherCommand(String),
    /// An option ends the line without its value.
    #[error("--curl: `{0}` has no value")]
    NoValue(String),
    /// A header field without a colon.
    #[error("--curl: a header field has no colon")]
    NoColon,
    /// `-b` with the name of a file.
    #[error("--curl: a cookie file is not supported; give the cookies as `NAME=VALUE`")]
    CookieFile,
    /// A cookie without `=`.
    #[error("--curl: a cookie has no `=`")]
    BadCookie,
    /// `-L`.
    #[error("--curl: `-L` follows redirects, which a load does not; give the URL of the target")]
    Redirects,
    /// wirelab has an option of its own.
    #[error("--curl: remove `{option}` from the command line and give wirelab {own}")]
    Own {
        /// The option of curl.
        option: String,
        /// That of wirelab.
        own: &'static str,
    },
    /// An option without a counterpart.
    #[error("--curl: the option `{0}` is not supported; remove it, or use wirelab's own")]
    Unsupported(String),
    /// The line has no URL.
    #[error("--curl: the command line has no URL")]
    NoUrl,
    /// The line has another URL after this one.
    #[error("--curl: the command line has a second URL after `{0}`; give one")]
    SecondUrl(String),
    /// `-d TEXT` with `-d @FILE`.
    #[error("--curl: the command line has a body as text and one as a file; give one")]
    TwoBodies,
}

/// A request that was found in the words of another tool.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    /// The URL; its path is that of the request, unless the request has one.
    pub url: String,
    /// All but the URL.
    pub request: WrittenRequest,
}

/// Options without a value that change nothing in the request.
const HARMLESS: [&str; 14] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-v",
    "--verbose",
    "-i",
    "--include",
    "-f",
    "--fail",
    "-g",
    "--globoff",
    "-N",
    "--no-buffer",
];

/// Options with a value that change nothing in the request.
const HARMLESS_WITH_VALUE: [&str; 4] = ["-o", "--output", "-w", "--write-out"];

/// Options for which wirelab has its own, with the name of that.
const OWN: [(&str, &str); 17] = [
    ("-k", "--insecure"),
    ("--insecure", "--insecure"),
    ("--cacert", "--ca"),
    ("-m", "--timeout"),
    ("--max-time", "--timeout"),
    ("--connect-timeout", "--connect-timeout"),
    ("--http1.1", "--protocol h1"),
    ("--http2", "--protocol h2"),
    ("--http2-prior-knowledge", "--protocol h2c"),
    ("--http3", "--protocol h3"),
    ("--http3-only", "--protocol h3"),
    ("--connect-to", "--connect-to"),
    ("--unix-socket", "--unix-socket"),
    ("-x", "--proxy"),
    ("--proxy", "--proxy"),
    ("--socks5", "--proxy socks5://HOST:PORT"),
    ("--socks5-hostname", "--proxy socks5h://HOST:PORT"),
];

/// Reads a command line.
///
/// # Errors
/// The mistake, or what a load cannot do, with the remedy.
pub fn parse(command: &str) -> Result<Found> {
    // A line that ends with a backslash goes on, as copied from a shell.
    let joined = command.replace("\\\r\n", " ").replace("\\\n", " ");
    let words = shlex::split(&joined).ok_or(CurlError::OpenQuote)?;
    let mut words = words.into_iter().skip_while(|word| word == "$");
    match words.next().as_deref() {
        Some("curl") => {}
        other => return Err(CurlError::OtherCommand(other.unwrap_or("nothing").to_owned())),
    }
    let mut reader = Reader::default();
    while let Some(word) = words.next() {
        let mut next = Some(word);
        while let Some(word) = next.take() {
            let (option, mut attached) = split(&word);
            let mut value =
                || attached.take().or_else(|| words.next()).ok_or_else(|| CurlError::NoValue(option.clone()));
            reader.take(&option, &mut value)?;
            // Short options without a value may share a dash: `-sX POST`.
            next = attached.map(|rest| format!("-{rest}"));
        }
    }
    reader.finish()
}

/// An option and the value that is attached to it: `-XPOST`, `--request=POST`.
fn split(word: &str) -> (String, Option<String>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
    }
    if word.len() > 2 && word.starts_with('-') && word.is_char_boundary(2) {
        return (word[..2].to_owned(), Some(word[2..].to_owned()));
    }
    (word.to_owned(), None)
}

#[derive(Default)]
struct Reader {
    url: Option<String>,
    request: WrittenRequest,
    data: Vec<String>,
    sends_in_url: bool,
    is_json: bool,
}

impl Reader {
    fn take(&mut self, option: &str, value: &mut dyn FnMut() -> Result<String>) -> Result {
        let request = &mut self.request;
        match option {
            "-X" | "--request" => request.method = Some(value()?),
            "-I" | "--head" => request.method = Some("HEAD".to_owned()),
            "-H" | "--header" => {
                let header = value()?;
                let (name, text) = header.split_once(':').ok_or(CurlError::NoColon)?;
                request.add_field(name.trim(), text.trim().to_owned());
            }
            "-A" | "--user-agent" => request.add_field("user-agent", value()?),
            "-e" | "--referer" => request.add_field("referer", value()?),
            "--compressed" => request.add_field("accept-encoding", "gzip, deflate, br".to_owned()),
            "-u" | "--user" => {
                let basic = format!("Basic {}", STANDARD.encode(value()?));
                request.add_field("authorization", basic);
            }
            "--oauth2-bearer" => {
                let bearer = format!("Bearer {}", value()?);
                request.add_field("authorization", bearer);
            }
            "-b" | "--cookie" => {
                let cookies = value()?;
                if !cookies.contains('=') {
                    return Err(CurlError::CookieFile);
                }
                if !request.add_cookies(&cookies) {
                    return Err(CurlError::BadCookie);
                }
            }
            "-d" | "--data" | "--data-ascii" | "--data-binary" => match value()? {
                file if file.starts_with('@') => request.body_file = Some(file[1..].into()),
                text => self.data.push(text),
            },
            "--data-raw" => self.data.push(value()?),
            "--json" => {
                self.is_json = true;
                self.data.push(value()?);
            }
            "-G" | "--get" => self.sends_in_url = true,
            "--url" => self.url(value()?)?,
            "-L" | "--location" => return Err(CurlError::Redirects),
            option if HARMLESS.contains(&option) => {}
            option if HARMLESS_WITH_VALUE.contains(&option) => drop(value()?),
            option if option.starts_with('-') => {
                return Err(match OWN.iter().find(|(curl, _)| *curl == option) {
                    Some((_, own)) => CurlError::Own { option: option.to_owned(), own },
                    None => CurlError::Unsupported(option.to_owned()),
                });
            }
            url => self.url(url.to_owned())?,
        }
        Ok(())
    }

    fn url(&mut self, url: String) -> Result {
        let url = if url.contains("://") { url } else { format!("http://{url}") };
        match self.url.replace(url) {
            None => Ok(()),
            Some(first) => Err(CurlError::SecondUrl(first)),
        }
    }

    fn finish(mut self) -> Result<Found> {
        let mut url = self.url.take().ok_or(CurlError::NoUrl)?;
        let mut request = std::mem::take(&mut self.request);
        if !self.data.is_empty() {
            let data = self.data.join("&");
            if self.sends_in_url {
                let separator = if url.contains('?') { '&' } else { '?' };
                url = format!("{url}{separator}{data}");
            } else if request.body_file.is_some() {
                return Err(CurlError::TwoBodies);
            } else {
                request.body = Some(data);
            }
        }
        let has_body = request.body.is_some() || request.body_file.is_some();
        if has_body && request.field("content-type").is_none() {
            let kind = if self.is_json { "application/json" } else { "application/x-www-form-urlencoded" };
            request.add_field("content-type", kind.to_owned());
        }
        if self.is_json && request.field("accept").is_none() {
            request.add_field("accept", "application/json".to_owned());
        }
        Ok(Found { url, request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_from_a_browser_is_the_request_of_the_browser() {
        let found = parse(
            "curl 'https://shop.test/api/orders?x=1' \\\n  -H 'Accept: */*' -b 'id=7; theme=dark' \\\n  \
             --data-raw '{\"a\":\"it'\\''s\"}' -H 'content-type: application/json' --compressed",
        )
        .unwrap();
        let request = &found.request;
        assert_eq!(found.url, "https://shop.test/api/orders?x=1");
        assert_eq!((request.method(), request.body.as_deref()), ("POST", Some("{\"a\":\"it's\"}")));
        assert_eq!(request.cookies.iter().map(|(a, b)| format!("{a}{b}")).collect::<Vec<_>>(), ["id7", "themedark"]);
        assert_eq!(request.field("Content-Type").unwrap().all(), ["application/json"]);
        assert_eq!(request.field("accept-encoding").unwrap().all().len(), 1);
    }

    #[test]
    fn options_mean_what_they_mean_to_curl() {
        let of = |command: &str| parse(command).unwrap();
        let form = of("curl -sXPUT -d a=1 --data b=2 -u me:pw a.test/x");
        assert_eq!((form.url.as_str(), form.request.method()), ("http://a.test/x", "PUT"));
        assert_eq!(form.request.body.as_deref(), Some("a=1&b=2"));
        assert_eq!(form.request.field("authorization").unwrap().all(), ["Basic bWU6cHc="]);
        assert_eq!(form.request.field("content-type").unwrap().all(), ["application/x-www-form-urlencoded"]);
        let get = of("curl -G -d q=1 https://a.test/?p=0");
        assert_eq!((get.url.as_str(), get.request.method()), ("https://a.test/?p=0&q=1", "GET"));
        let json = of("curl --json '{}' https://a.test/");
        assert_eq!(json.request.field("accept").unwrap().all(), ["application/json"]);
        assert_eq!(of("curl -I https://a.test/").request.method(), "HEAD");
        let file = of("curl --data-binary @big.bin https://a.test/");
        assert_eq!(file.request.body_file.as_deref(), Some(std::path::Path::new("big.bin")));
    }

    #[test]
    fn what_a_load_cannot_do_is_refused_with_the_remedy() {
        for (command, words) in [
            ("wget https://a.test/", "instead of `curl`"),
            ("curl 'https://a.test/", "not closed"),
            ("curl -s", "no URL"),
            ("curl https://a.test/ https://b.test/", "second URL"),
            ("curl -k https://a.test/", "give wirelab --insecure"),
            ("curl --http3 https://a.test/", "--protocol h3"),
            ("curl -L https://a.test/", "redirects"),
            ("curl -b jar.txt https://a.test/", "cookie file"),
            ("curl --frobnicate https://a.test/", "`--frobnicate` is not supported"),
            ("curl https://a.test/ -X", "`-X` has no value"),
            ("curl -d a -d @b https://a.test/", "give one"),
        ] {
            let why = parse(command).unwrap_err().to_string();
            assert!(why.contains(words), "{command}: {why}");
        }
    }
}
