//! Raw requests over TCP.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use wirelab_engine::raw::{HEADER, Header, RawStream};

use crate::{load, server, spec};

/// Sends `count` requests to a server that counts them.
pub fn every_request_is_answered_once(count: u64) {
    let answered = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&answered);
    let address = server(move |_, mut stream| {
        let _ = stream.set_nodelay(true);
        let mut request = [0; HEADER + 7];
        while stream.read_exact(&mut request).is_ok() {
            let header = Header::decode(request.first_chunk().unwrap());
            assert_eq!(header, Header { wanted: 100, body: 7, delay_us: 0 });
            counter.fetch_add(1, Ordering::Relaxed);
            // In two pieces, which may arrive by themselves.
            if stream.write_all(&[0; 60]).and_then(|()| stream.write_all(&[0; 40])).is_err() {
                return;
            }
        }
    });
    let spec = spec(address, |spec| {
        spec["protocol"] = json!("tcp");
        spec["request"] = json!({"method": "GET", "path": "/bytes/100", "body_size": 7});
        spec["extent"] = json!({"requests": count});
    });
    let samples = load::<RawStream>(spec);
    assert_eq!((samples.len() as u64, answered.load(Ordering::Relaxed)), (count, count));
    for sample in &samples {
        sample.check().unwrap();
        assert_eq!((sample.error, sample.status, sample.bytes_in, sample.bytes_out), (None, None, 100, 7));
    }
}
