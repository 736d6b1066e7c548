//! The sources of the endpoints, packed by build.rs: the program carries them and works without a checkout.

use wirelab_lab::endpoints::Carried;

static ENDPOINTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/endpoints.tar.gz"));

/// Environment variable that turns carried endpoints off with the value `off`, as in the container image.
const SWITCH: &str = "WIRELAB_CARRIED";

/// The endpoints outside of folders.
pub fn endpoints() -> Option<Carried<'static>> {
    let is_off = std::env::var_os(SWITCH).is_some_and(|value| value == "off");
    (!is_off).then_some(Carried { archive: ENDPOINTS })
}
