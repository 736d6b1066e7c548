//! From a written request to the requests that clients send.

use std::error::Error;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::MethodDescriptor;
use wirelab_model::mix::{Content, MixedRequest};
use wirelab_model::nearest::nearest;
use wirelab_model::proxy::{ProxyUrl, SignIn};
use wirelab_model::request::{FieldValues, WrittenRequest};
use wirelab_model::site::USER_AGENT;
use wirelab_model::spec::Request;
use wirelab_model::via::Credentials;

use super::calls::{self, Schemas};
use super::data::Data;
use super::error::RequestError;
use super::message::{described, encode, is_json};
use super::template::{Escape, Placeholder, Template};

/// The largest size of all requests together, in bytes.
const LARGEST: u64 = 256 << 20;

/// Where values come from. The crate itself reads no file and no variable.
pub trait Sources {
    /// The value of an environment variable, if it is set and text.
    fn variable(&self, name: &str) -> Option<String>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The descriptors of a service of gRPC that the server itself reports, as a `FileDescriptorSet`. The question has
    /// these header fields. `None` if no server can be asked.
    ///
    /// # Errors
    /// If the server does not report them.
    fn reflect(&self, _service: &str, _headers: &[(String, String)]) -> Result<Option<Vec<u8>>, Unreported> {
        Ok(None)
    }
}

/// Why a server did not report descriptors.
pub type Unreported = Box<dyn Error + Send + Sync>;

/// The requests to send, with every placeholder replaced: calls of gRPC, or requests of HTTP. They may hold secrets, so
/// they belong into no file of a run.
///
/// # Errors
/// If a value is missing, or a file cannot be used.
pub fn render(
    written: &[WrittenRequest],
    is_grpc: bool,
    sources: &dyn Sources,
) -> Result<Vec<MixedRequest>, RequestError> {
    let (mut left, mut schemas) = (LARGEST, Schemas::default());
    let each = written.iter().map(|request| {
        calls::check_keys(request, is_grpc)?;
        let mut form = Form::of(request, is_grpc, sources)?;
        if is_grpc {
            form.method = form.described(request, sources, &mut schemas)?;
        }
        form.render(request, sources, &mut left)
    });
    each.collect()
}

/// A request with its texts cut at their placeholders.
struct Form {
    path: Template,
    headers: Vec<(String, Template)>,
    body: Body,
    data: Option<Data>,
    /// The method of gRPC, if its descriptors are known.
    method: Option<MethodDescriptor>,
}

enum Body {
    None,
    Generated(u64),
    Text(Template, Escape),
    /// Messages of gRPC as JSON.
    Messages(Template),
    Bytes(Vec<u8>),
}

impl Form {
    fn of(request: &WrittenRequest, is_grpc: bool, sources: &dyn Sources) -> Result<Self, RequestError> {
        let body = body(request, is_grpc, sources)?;
        let mut headers = Vec::new();
        if request.field("user-agent").is_none() {
            headers.push(("user-agent".to_owned(), Template::of(USER_AGENT)));
        }
        if let (Body::Text(_, Escape::Json), None) = (&body, request.field("content-type")) {
            headers.push(("content-type".to_owned(), Template::of("application/json")));
        }
        for (name, values) in &request.headers {
            headers.extend(values.all().iter().map(|value| (name.to_ascii_lowercase(), Template::of(value))));
        }
        if !request.cookies.is_empty() {
            let pairs: Vec<_> = request.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            headers.push(("cookie".to_owned(), Template::of(&pairs.join("; "))));
        }
        let data = match &request.data {
            None => None,
            Some(path) => Some(Data::read(&text(path, sources)?).map_err(|(line, why)| RequestError::Data {
                path: path.clone(),
                line,
                why,
            })?),
        };
        Ok(Self { path: Template::of(request.path()), headers, body, data, method: None })
    }

    /// The method of a call, if JSON has to become its messages, or its messages JSON.
    fn described(
        &self,
        request: &WrittenRequest,
        sources: &dyn Sources,
        schemas: &mut Schemas,
    ) -> Result<Option<MethodDescriptor>, RequestError> {
        let expect = &request.expect;
        let is_needed = matches!(self.body, Body::Messages(_)) || !expect.json.is_empty() || expect.messages.is_some();
        if !is_needed && request.protoset.is_none() {
            return Ok(None);
        }
        let method = schemas.method(request, &self.headers(0, sources)?, sources)?;
        if expect.messages.is_some() && !method.is_server_streaming() {
            return Err(RequestError::NoStream { method: request.path().to_owned() });
        }
        Ok(Some(method))
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        let body = match &self.body {
            Body::Text(template, _) | Body::Messages(template) => Some(template),
            Body::None | Body::Generated(_) | Body::Bytes(_) => None,
        };
        [&self.path].into_iter().chain(self.headers.iter().map(|(_, template)| template)).chain(body)
    }

    fn render(
        &self,
        written: &WrittenRequest,
        sources: &dyn Sources,
        left: &mut u64,
    ) -> Result<MixedRequest, RequestError> {
        let mut placeholders = self.templates().flat_map(Template::placeholders);
        let uses_data = placeholders.any(|placeholder| matches!(placeholder, Placeholder::Data(_)));
        if let (false, Some(data), Some(path)) = (uses_data, &self.data, &written.data) {
            return Err(RequestError::Unused { path: path.clone(), known: data.names().to_vec() });
        }
        let rows = self.data.as_ref().map_or(1, Data::rows);
        let variant = |row| {
            let request = self.variant(written, row, sources)?;
            let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
            let bytes = request.body.as_ref().map_or(0, |_| request.body_size) + (request.path.len() + headers) as u64;
            *left = left.checked_sub(bytes).ok_or(RequestError::TooLarge { bytes: LARGEST + bytes, most: LARGEST })?;
            Ok(request)
        };
        Ok(MixedRequest {
            name: written.name(),
            weight: written.weight(),
            variants: (0..rows).map(variant).collect::<Result<_, _>>()?,
            expect: written.expect.clone(),
            method: self.method.as_ref().map(described),
        })
    }

    fn variant(&self, written: &WrittenRequest, row: usize, sources: &dyn Sources) -> Result<Request, RequestError> {
        let value = |placeholder: &Placeholder| self.value(placeholder, row, sources);
        let (body_size, body) = match &self.body {
            Body::None => (0, None),
            Body::Generated(size) => (*size, None),
            Body::Bytes(bytes) => (bytes.len() as u64, Some(Content::Base64(STANDARD.encode(bytes)))),
            Body::Messages(template) => {
                let path = || written.path().to_owned();
                let method = self.method.as_ref().ok_or_else(|| RequestError::NoDescriptors { method: path() })?;
                let row = self.data.as_ref().map(|_| row + 1);
                let json = template.fill(Escape::Json, value)?;
                let (messages, size) = encode(method, &json).map_err(|error| RequestError::Message { row, error })?;
                (size, Some(messages))
            }
            Body::Text(template, escape) => {
                let text = template.fill(*escape, value)?;
                (text.len() as u64, Some(Content::Text(text)))
            }
        };
        Ok(Request {
            method: written.method().to_owned(),
            path: self.path.fill(Escape::Percent, value)?,
            body_size,
            body,
            headers: self.headers(row, sources)?,
            expect: None,
        })
    }

    fn headers(&self, row: usize, sources: &dyn Sources) -> Result<Vec<(String, String)>, RequestError> {
        let value = |placeholder: &Placeholder| self.value(placeholder, row, sources);
        self.headers.iter().map(|(name, template)| Ok((name.clone(), template.fill(Escape::None, value)?))).collect()
    }

    fn value(&self, placeholder: &Placeholder, row: usize, sources: &dyn Sources) -> Result<String, RequestError> {
        match placeholder {
            Placeholder::Variable(name) => variable(name, sources),
            Placeholder::File(path) => line(path, sources),
            Placeholder::Data(name) => {
                let known = self.data.as_ref().map(Data::names).unwrap_or_default();
                let found = self.data.as_ref().and_then(|data| data.value(row, name));
                found.map(str::to_owned).ok_or_else(|| RequestError::Unknown {
                    name: name.clone(),
                    nearest: nearest(name, known.iter().map(String::as_str)).map(str::to_owned),
                    known: known.to_vec(),
                })
            }
        }
    }
}

/// User and password of a proxy, with every placeholder replaced; `None` without them.
///
/// # Errors
/// If a value is missing.
pub fn credentials(proxy: &ProxyUrl, sources: &dyn Sources) -> Result<Option<Credentials>, RequestError> {
    let Some(SignIn { user, password }) = &proxy.sign_in else { return Ok(None) };
    let fill = |text: &str| {
        Template::of(text).fill(Escape::None, |placeholder| match placeholder {
            Placeholder::Variable(name) => variable(name, sources),
            Placeholder::File(path) => line(path, sources),
            Placeholder::Data(name) => {
                Err(RequestError::Unknown { name: name.clone(), known: Vec::new(), nearest: None })
            }
        })
    };
    Ok(Some(Credentials { user: fill(user)?, password: fill(password)? }))
}

fn variable(name: &str, sources: &dyn Sources) -> Result<String, RequestError> {
    sources.variable(name).ok_or_else(|| RequestError::Variable { name: name.to_owned() })
}

/// The text of a file without the line break at its end.
fn line(path: &Path, sources: &dyn Sources) -> Result<String, RequestError> {
    Ok(text(path, sources)?.trim_end_matches(['\r', '\n']).to_owned())
}

fn body(request: &WrittenRequest, is_grpc: bool, sources: &dyn Sources) -> Result<Body, RequestError> {
    let template = |text: &str| match is_grpc {
        true if is_json(text) => Body::Messages(Template::of(text)),
        true => Body::Text(Template::of(text), Escape::None),
        false => Body::Text(Template::of(text), escape(request, text)),
    };
    if let Some(text) = &request.body {
        return Ok(template(text));
    }
    if let Some(path) = &request.body_file {
        let bytes = read(path, sources)?;
        return Ok(match String::from_utf8(bytes) {
            Ok(text) => template(&text),
            Err(binary) => Body::Bytes(binary.into_bytes()),
        });
    }
    Ok(request.body_size.map_or(Body::None, |size| Body::Generated(size.bytes())))
}

/// How values are escaped in a body: by its content type, or as JSON if it looks like JSON.
fn escape(request: &WrittenRequest, body: &str) -> Escape {
    let content_type = request.field("content-type").and_then(|values| FieldValues::all(values).first());
    match content_type {
        Some(kind) if kind.contains("json") => Escape::Json,
        Some(kind) if kind.contains("x-www-form-urlencoded") => Escape::Percent,
        Some(_) => Escape::None,
        None if body.trim_start().starts_with(['{', '[']) => Escape::Json,
        None => Escape::None,
    }
}

fn text(path: &Path, sources: &dyn Sources) -> Result<String, RequestError> {
    String::from_utf8(read(path, sources)?).map_err(|_| RequestError::NotText { path: path.to_owned() })
}

pub(super) fn read(path: &Path, sources: &dyn Sources) -> Result<Vec<u8>, RequestError> {
    sources.file(path).map_err(|source| RequestError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Sources for Fixed {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "TOKEN").then(|| "secret".to_owned())
        }

        fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
            match path.to_str() {
                Some("users.csv") => Ok(b"user,id\nann,1\n\"b o\",2\n".to_vec()),
                Some("token") => Ok(b"from file\n".to_vec()),
                Some("image") => Ok(vec![255, 0]),
                Some("shop.pb") => Ok(super::super::fixture::shop(&[])),
                Some("order.json") => Ok(br#"{"user":"{{user}}"}"#.to_vec()),
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
    }

    fn of(toml: &str) -> Result<MixedRequest, RequestError> {
        Ok(render(&[toml::from_str(toml).unwrap()], false, &Fixed)?.remove(0))
    }

    fn call(toml: &str) -> Result<MixedRequest, RequestError> {
        Ok(render(&[toml::from_str(toml).unwrap()], true, &Fixed)?.remove(0))
    }

    #[test]
    fn a_call_has_a_message_for_each_row_and_its_method() {
        let request = call(
            "path = '/shop.Cart/Put'\nprotoset = 'shop.pb'\nbody = '{\"count\": {{id}}}'\ndata = 'users.csv'\n\
             headers = { authorization = 'Bearer {{env.TOKEN}}' }\nexpect = { json = { '$.name' = 'a' } }",
        )
        .unwrap();
        let bodies: Vec<_> = request.variants.iter().map(|one| (one.body_size, one.body.clone().unwrap())).collect();
        let message = |bytes: [u8; 2]| (2, Content::Messages(vec![STANDARD.encode(bytes)]));
        assert_eq!(bodies, [message([8, 1]), message([8, 2])]);
        assert!(request.variants[0].headers.contains(&("authorization".to_owned(), "Bearer secret".to_owned())));
        assert!(request.variants[0].headers.iter().all(|(name, _)| name != "content-type"));
        let method = request.method.unwrap();
        assert_eq!((method.response_type.as_str(), method.streams_response), ("shop.Item", false));
        let encoded = call("path = '/shop.Cart/Put'\nbody_file = 'image'").unwrap();
        assert_eq!((encoded.method, encoded.variants[0].body_size), (None, 2));
    }

    #[test]
    fn a_call_that_cannot_be_made_is_refused_with_the_remedy() {
        let put = "path = '/shop.Cart/Put'\nprotoset = 'shop.pb'";
        for (toml, words) in [
            ("path = '/shop.Cart/Put'\nbody = '{}'", "`protoset` names the file"),
            ("path = '/shop.Cart/Put'\nexpect = { json = { '$.a' = 1 } }", "`protoset` names the file"),
            ("path = '/shop.Cart/Put'\nprotoset = 'missing'", "cannot read `missing`"),
            ("path = '/shop.Cart/Pt'\nprotoset = 'shop.pb'", "`shop.pb`: the service `shop.Cart` has no method `Pt`"),
            ("path = '/{{env.TOKEN}}/Put'\nprotoset = 'shop.pb'", "no service"),
            (&format!("{put}\nexpect = {{ status = 200 }}"), "`expect.status` is about HTTP"),
            (&format!("{put}\nexpect = {{ messages = 2 }}"), "`/shop.Cart/Put` answers with one message"),
            (&format!("{put}\nbody = '{{\"count\": \"{{{{user}}}}\"}}'\ndata = 'users.csv'"), "with row 1 of the data"),
        ] {
            let why = call(toml).unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("secret"), "{toml}: {why}");
        }
        for key in ["protoset = 'shop.pb'", "expect = { messages = 2 }"] {
            assert!(of(key).unwrap_err().to_string().contains("is about gRPC"));
        }
    }

    #[test]
    fn a_request_is_sent_once_for_each_row() {
        let request = of("path = '/u/{{user}}'\nbody_file = 'order.json'\ndata = 'users.csv'\nweight = 3").unwrap();
        assert_eq!((request.name.as_str(), request.weight), ("POST /u/{{user}}", 3));
        let paths: Vec<_> = request.variants.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/u/ann", "/u/b%20o"]);
        let second = &request.variants[1];
        assert_eq!(second.body, Some(Content::Text(r#"{"user":"b o"}"#.to_owned())));
        assert_eq!((second.method.as_str(), second.body_size), ("POST", 14));
        assert!(second.headers.contains(&("content-type".to_owned(), "application/json".to_owned())));
    }

    #[test]
    fn headers_cookies_and_credentials_are_sent() {
        let request = of(
            "headers = { Authorization = 'Bearer {{env.TOKEN}}', x-a = ['1', '{{file.token}}'], User-Agent = 'me' }\n\
                          cookies = { a = '1', b = '{{env.TOKEN}}' }",
        )
        .unwrap();
        let expected = [
            ("authorization", "Bearer secret"),
            ("x-a", "1"),
            ("x-a", "from file"),
            ("user-agent", "me"),
            ("cookie", "a=1; b=secret"),
        ];
        assert_eq!(request.variants[0].headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(request.name, "GET /");
    }

    #[test]
    fn bodies_are_text_bytes_or_generated() {
        let body = |toml: &str| {
            let one = of(toml).unwrap().variants.remove(0);
            (one.body_size, one.body)
        };
        assert_eq!(body("body_file = 'image'"), (2, Some(Content::Base64("/wA=".to_owned()))));
        assert_eq!(body("body_size = '2 KiB'"), (2048, None));
        let form = "body = 'u={{env.TOKEN}}&v=é'\nheaders = { content-type = 'application/x-www-form-urlencoded' }";
        assert_eq!(body(form), (13, Some(Content::Text("u=secret&v=é".to_owned()))));
    }

    #[test]
    fn a_missing_value_is_named_with_the_remedy_and_no_secret() {
        for (toml, words) in [
            ("path = '/{{usr}}'\ndata = 'users.csv'", "did you mean `{{user}}`?"),
            ("path = '/{{user}}'", "no `data`"),
            ("path = '/{{env.MISSING}}'", "export it first"),
            ("path = '/{{file.missing}}'", "cannot read `missing`"),
            ("body_file = 'missing'", "cannot read `missing`"),
            ("data = 'users.csv'", "no placeholder uses"),
            ("path = '/{{user}}'\ndata = 'image'", "not UTF-8"),
            ("path = '/{{user}}'\ndata = 'token'", "token:1: no row"),
        ] {
            let why = of(toml).unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("secret"), "{toml}: {why}");
        }
    }

    #[test]
    fn credentials_of_a_proxy_come_from_the_environment_and_from_files() {
        let of = |text: &str| credentials(&text.parse().unwrap(), &Fixed);
        let found = of("http://a%40b:{{env.TOKEN}}@gate:1").unwrap().unwrap();
        assert_eq!((found.user.as_str(), found.password.as_str()), ("a@b", "secret"));
        assert_eq!(of("http://a:{{file.token}}@gate:1").unwrap().unwrap().password, "from file");
        assert_eq!(of("http://gate:1").unwrap(), None);
        assert!(of("http://a:{{env.NONE}}@gate:1").unwrap_err().to_string().contains("NONE"));
        assert!(of("http://a:{{password}}@gate:1").is_err());
    }
}
