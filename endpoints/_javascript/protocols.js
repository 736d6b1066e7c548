// The ALPN identifiers of the protocols; none without TLS.

const ALPN = { h1c: null, h1: 'http/1.1', h2c: null, h2: 'h2', h3: 'h3' };

export class Protocol {
  constructor(name) {
    this.name = name;
    this.alpn = ALPN[name];
    this.isSecure = this.alpn !== null;
    this.isQuic = name === 'h3';
    this.isHttp2 = name === 'h2' || name === 'h2c';
    this.multiplexes = this.isHttp2 || this.isQuic;
  }
}
