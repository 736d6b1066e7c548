"""Envoy's configuration."""

import os
import urllib.parse

from wirelab_servers import choices

# In QUIC too, Envoy must issue tickets that all workers can read, or none. It can, but not by default.
RUNTIME = {"name": "site", "static_layer": {"envoy.reloadable_features.quic_session_ticket_support": True}}

TYPE = "type.googleapis.com/envoy."


def of(site, documents):
    """`documents`: the sizes of the files in the folder of that name, by their paths."""
    listener = {
        "name": "site",
        "address": {"socket_address": {"protocol": "UDP" if site.is_quic else "TCP", "address": str(site.address),
                                       "port_value": site.port}},
        "filter_chains": [{"filters": [connection_manager(site, documents)], **transport_socket(site)}],
    }
    if site.is_quic:
        listener["udp_listener_config"] = udp(site)
    else:
        listener["tcp_backlog_size"] = choices.BACKLOG
    return {"static_resources": {"listeners": [listener]}, "layered_runtime": {"layers": [RUNTIME]}}


def connection_manager(site, documents):
    return typed("envoy.filters.network.http_connection_manager",
                 "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", {
        "codec_type": {"h1c": "HTTP1", "h1": "HTTP1", "h2c": "HTTP2", "h2": "HTTP2", "h3": "HTTP3"}[site.protocol],
        "stat_prefix": "site",
        "generate_request_id": False,  # a proxy's work, which the other servers do not do
        "common_http_protocol_options": {"idle_timeout": f"{choices.IDLE_S}s"},
        **protocol_options(site),
        "route_config": routes(documents),
        "http_filters": [
            # A request is answered when it is complete, which in HTTP/3 may be later than its header.
            typed("envoy.filters.http.buffer", "extensions.filters.http.buffer.v3.Buffer", {"max_request_bytes": 65_536}),
            typed("envoy.filters.http.router", "extensions.filters.http.router.v3.Router", {}),
        ],
    })


def routes(documents):
    """A route for every document, which Envoy reads when it starts."""
    octets = {"header": {"key": "content-type", "value": "application/octet-stream"},
              "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
    answers = [
        {"match": {"path": f"/{urllib.parse.quote(name)}"}, "response_headers_to_add": [octets],
         "direct_response": {"status": 200, "body": {"filename": f"documents/{name}"}}}
        for name in documents]
    return {
        "max_direct_response_body_size_bytes": max(documents.values(), default=0),
        "virtual_hosts": [{"name": "site", "domains": ["*"], "routes": [
            *answers, {"match": {"prefix": "/"}, "direct_response": {"status": 404}}]}],
    }


def protocol_options(site):
    if site.protocol == "h3":
        return {"http3_protocol_options": {"quic_protocol_options": {"max_concurrent_streams": choices.STREAMS["h3"]}}}
    if not site.is_http2:
        return {}
    options = {"max_concurrent_streams": choices.STREAMS[site.protocol], "initial_stream_window_size": site.stream_window,
               "initial_connection_window_size": site.connection_window}
    return {"http2_protocol_options": {name: value for name, value in options.items() if value is not None}}


def transport_socket(site):
    if not site.is_secure:
        return {}
    common = {
        "alpn_protocols": [site.alpn],
        "tls_params": {"tls_minimum_protocol_version": "TLSv1_3", "tls_maximum_protocol_version": "TLSv1_3",
                       "ecdh_curves": [choices.GROUP]},
        "tls_certificates": [{"certificate_chain": {"filename": "certificate.pem"}, "private_key": {"filename": "key.pem"}}],
    }
    if site.key_log is not None:
        common["key_log"] = {"path": os.path.abspath(site.key_log)}
    # With keys of their own, workers could not read each other's tickets.
    tickets = {"session_ticket_keys": {"keys": [{"filename": "tickets.key"}]}} if site.resumption else {
        "disable_stateless_session_resumption": True, "disable_stateful_session_resumption": True}
    context = {"common_tls_context": common, **tickets}
    if site.is_quic:
        return {"transport_socket": typed(
            "envoy.transport_sockets.quic", "extensions.transport_sockets.quic.v3.QuicDownstreamTransport",
            {"downstream_tls_context": context, "enable_early_data": site.early_data})}
    return {"transport_socket": typed("envoy.transport_sockets.tls",
                                      "extensions.transport_sockets.tls.v3.DownstreamTlsContext", context)}


def udp(site):
    writer = ("default", "UdpDefaultWriterFactory") if site.gso is False else ("gso", "UdpGsoBatchWriterFactory")
    return {
        "quic_options": {},
        "downstream_socket_config": {"prefer_gro": site.gro is not False},
        "udp_packet_packet_writer_config": typed(f"envoy.udp_packet_writer.{writer[0]}",
                                                 f"extensions.udp_packet_writer.v3.{writer[1]}", {}),
    }


def typed(name, kind, fields):
    return {"name": name, "typed_config": {"@type": TYPE + kind, **fields}}
