//! What browsers report and save: archives of pages, network events, films.

use serde_json::Value;
use wirelab_browser::film::{Frame, film, small};
use wirelab_browser::reports::{chromium, connections, firefox};
use wirelab_pages::Archive;

use crate::Target;
use crate::bytes::{part, text, texts, with_part};

pub const TARGETS: &[Target] = &[
    Target { name: "har", seeds: archives, read: archive },
    Target { name: "chromium", seeds: chromium_events, read: read_chromium },
    Target { name: "firefox", seeds: firefox_events, read: read_firefox },
    Target { name: "film", seeds: pictures, read: pictures_of },
];

fn archives() -> Vec<Vec<u8>> {
    texts(&[r#"{"log":{"version":"1.2","creator":{"name":"x","version":"1"},"entries":[
{"request":{"method":"GET","url":"https://a.example/","headers":[]},"response":{"status":200,
"headers":[{"name":"content-type","value":"text/html"}],"content":{"size":5,"mimeType":"text/html","text":"aGVsbG8=",
"encoding":"base64"}}},{"request":{"method":"GET","url":"https://b.example/x.png","headers":[]},"response":{"status":200,
"headers":[],"content":{"size":3,"mimeType":"image/png","text":"abc"}}}]}}"#])
}

fn archive(input: &[u8]) {
    drop(Archive::of(&text(input)));
}

fn chromium_events() -> Vec<Vec<u8>> {
    texts(&[r#"[{"method":"Network.requestWillBeSent","sessionId":"s","params":{"requestId":"1","timestamp":1.5,
"wallTime":1700000000.5,"type":"Image","request":{"url":"https://a/x#y","method":"GET","headers":{"a":"b"}}}},
{"method":"Network.requestWillBeSentExtraInfo","params":{"requestId":"1","headers":{"a":"b"}}},
{"method":"Network.responseReceived","params":{"requestId":"1","timestamp":2,"response":{"status":200,"protocol":"h3",
"mimeType":"a/b","connectionId":7,"encodedDataLength":60,"fromDiskCache":false,"headers":{"location":"/z"},
"timing":{"requestTime":1.5,"dnsStart":1,"dnsEnd":2,"connectStart":2,"connectEnd":9,"sslStart":3,"sslEnd":9,
"sendStart":9,"sendEnd":10,"receiveHeadersEnd":12}}}},
{"method":"Network.loadingFinished","params":{"requestId":"1","timestamp":3,"encodedDataLength":3060}},
{"method":"Network.loadingFailed","params":{"requestId":"2","timestamp":3,"errorText":"net::ERR","canceled":true}}]"#])
}

fn read_chromium(input: &[u8]) {
    if let Ok(events) = serde_json::from_slice::<Vec<Value>>(input) {
        let _ = chromium::exchanges(&events);
        let _ = events.iter().map(chromium::leaves).count();
    }
}

const NOTED: &str =
    r#"[{"method":"GET","url":"https://a/x","ends":"::1 4001 ::1 443"},{"method":"GET","url":"b","ends":null}]"#;

fn firefox_events() -> Vec<Vec<u8>> {
    let events = r#"[{"method":"network.beforeRequestSent","params":{"redirectCount":0,"timestamp":1700000000050.0,
"request":{"request":"1","url":"https://a/x","method":"GET","destination":"image","timings":{"timeOrigin":1700000000000.0,
"requestTime":1,"dnsStart":3,"dnsEnd":4,"connectStart":4,"connectEnd":34,"tlsStart":14,"responseEnd":48},
"headers":[{"name":"accept","value":{"type":"string","value":"a"}}]}}},
{"method":"network.responseStarted","params":{"redirectCount":0,"request":{"request":"1"},"response":{"status":302,
"protocol":"H3","fromCache":false,"bytesReceived":3,"headersSize":2,"headers":[{"name":"Location","value":{"value":"b"}}]}}},
{"method":"network.responseCompleted","params":{"redirectCount":0,"request":{"request":"1"},"response":{"status":302}}},
{"method":"network.fetchError","params":{"redirectCount":0,"request":{"request":"1"},"errorText":"NS_ERROR_ABORT"}}]"#;
    vec![with_part(NOTED.as_bytes(), events.as_bytes())]
}

fn read_firefox(input: &[u8]) {
    let Some((noted, events)) = part(input) else { return };
    let mut connections = connections::Numbers::default().of(&text(noted));
    if let Ok(events) = serde_json::from_slice::<Vec<Value>>(events) {
        let _ = firefox::resources(&events, &mut connections);
    }
}

/// PNGs of 2 by 2 pixels: colours, and grey with transparency.
fn pictures() -> Vec<Vec<u8>> {
    let png = |kind: u8, rows: &[u8]| {
        let chunk = |name: &[u8; 4], data: &[u8]| {
            let body = [&name[..], data].concat();
            [&(data.len() as u32).to_be_bytes()[..], &body, &crc(&body).to_be_bytes()].concat()
        };
        // One stored block of zlib (RFC 1950, RFC 1951).
        let stored = [&[0x78, 1, 1, rows.len() as u8, 0, !(rows.len() as u8), 0xff][..], rows].concat();
        let data = [&stored[..], &adler(rows).to_be_bytes()].concat();
        let head = [&[0, 0, 0, 2, 0, 0, 0, 2, 8, kind, 0, 0, 0][..]].concat();
        [&b"\x89PNG\r\n\x1a\n"[..], &chunk(b"IHDR", &head), &chunk(b"IDAT", &data), &chunk(b"IEND", &[])].concat()
    };
    vec![
        png(2, &[0, 255, 255, 255, 200, 10, 10, 1, 0, 0, 0, 200, 10, 10]),
        png(4, &[0, 255, 255, 0, 255, 2, 1, 1, 1, 0]),
    ]
}

/// The checksum of PNG's chunks (RFC 2083, section 15).
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 })
    })
}

/// The checksum of zlib (RFC 1950, section 9).
fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}

fn pictures_of(input: &[u8]) {
    let _ = small(input);
    let frame = |at: f64| Frame { at, png: input.to_vec() };
    if let Ok(film) = film(&[frame(0.0), frame(100.0)]) {
        assert!(film.speed_index.is_finite() && film.speed_index >= 0.0, "the Speed Index is {}", film.speed_index);
    }
}
