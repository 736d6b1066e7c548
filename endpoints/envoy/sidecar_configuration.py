"""Envoy's configuration as a sidecar: one listener, and one cluster whose members a file names, which it watches."""

import base64
import json
import os
import socket

from wirelab_servers import choices

from configuration import TYPE, typed
from sidecar_spec import is_http2

ADMIN = "admin.sock"
CLUSTER = "upstreams"
STAT = "sidecar"
MEMBERS = "members.json"

# Streams, requests and connections at once, above which Envoy would answer 503 by itself: its default is 1024 of each.
MOST = 1_000_000

# A request waits for a connection as long as its client does, and no longer than an answer could be wanted.
CONNECT_TIMEOUT = "5s"


def of(spec):
    return {
        # Watched files need a name for their reader.
        "node": {"id": STAT, "cluster": STAT},
        # A socket in the folder: no port that others could reach, and nothing in the namespace but the listener.
        "admin": {"address": {"pipe": {"path": ADMIN}}},
        "static_resources": {"listeners": [listener(spec)], "clusters": [cluster(spec)]},
    }


def listener(spec):
    return {
        "name": STAT,
        "address": {"socket_address": {"address": str(spec.address), "port_value": spec.port}},
        "tcp_backlog_size": choices.BACKLOG,
        "filter_chains": [{"filters": [typed(
            "envoy.filters.network.http_connection_manager",
            "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", {
                "codec_type": "HTTP2" if spec.is_http2 else "HTTP1",
                "stat_prefix": STAT,
                "generate_request_id": False,  # it is for tracing, which is off here
                "common_http_protocol_options": {"idle_timeout": f"{choices.IDLE_S}s"},
                **({"http2_protocol_options": http2(spec)} if spec.is_http2 else {}),
                "stream_idle_timeout": "0s",  # clients have deadlines of their own
                "route_config": {"virtual_hosts": [{"name": STAT, "domains": ["*"], "routes": [
                    {"match": {"prefix": "/"}, "route": {"cluster": CLUSTER, "timeout": "0s"}}]}]},
                "http_filters": [typed("envoy.filters.http.router", "extensions.filters.http.router.v3.Router", {})],
            })]}],
    }


def cluster(spec):
    options = {"http2_protocol_options": http2(spec)} if is_http2(spec.upstream_protocol) else {"http_protocol_options": {}}
    return {
        "name": CLUSTER,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {"resource_api_version": "V3", "path_config_source": {"path": f"./{MEMBERS}"}}},
        # Each request goes to the next upstream. `LEAST_REQUEST` chooses the less busy of two random ones, which is chance with
        # one request at a time.
        "lb_policy": "ROUND_ROBIN",
        "connect_timeout": CONNECT_TIMEOUT,
        "circuit_breakers": {"thresholds": [
            {"max_connections": MOST, "max_pending_requests": MOST, "max_requests": MOST}]},
        # The file names the upstreams that are gone, at once.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "upstream_bind_config": {"socket_options": options_of_tcp(spec)},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
            "@type": f"{TYPE}extensions.upstreams.http.v3.HttpProtocolOptions",
            "common_http_protocol_options": {"idle_timeout": f"{choices.IDLE_S}s"},
            "explicit_http_config": options,
        }},
    }


def http2(spec):
    options = {"max_concurrent_streams": choices.STREAMS["h2c"], "initial_stream_window_size": spec.stream_window,
               "initial_connection_window_size": spec.connection_window}
    return {name: value for name, value in options.items() if value is not None}


def options_of_tcp(spec):
    """The options of the connections that it opens. Accepted connections inherit them from the listening socket."""
    if spec.congestion is None:
        return []
    return [{"description": "congestion", "level": socket.IPPROTO_TCP, "name": socket.TCP_CONGESTION, "state": "STATE_PREBIND",
             "buf_value": base64.b64encode(spec.congestion.encode()).decode()}]


def write_members(folder, upstreams, version):
    """Replaces the file as a whole, which is what Envoy watches for."""
    members = [{"endpoint": {"address": {"socket_address": {"address": address, "port_value": port}}}}
               for address, port in upstreams]
    assignment = {"@type": f"{TYPE}config.endpoint.v3.ClusterLoadAssignment", "cluster_name": CLUSTER,
                  "endpoints": [{"lb_endpoints": members}]}
    path = os.path.join(folder, MEMBERS)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump({"version_info": str(version), "resources": [assignment]}, file)
    os.rename(f"{path}.new", path)
