"""A configuration of OpenSSL, for servers that lack settings of their own."""

import os

from wirelab_servers import choices

CONFIGURATION = """\
openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = servers
[servers]
MinProtocol = TLSv1.3
Groups = {group}
Ciphersuites = {ciphers}
Options = ServerPreference
{tickets}
"""


def configure(site, folder):
    """Writes it; returns the environment variables that lead a server in the folder to it."""
    text = CONFIGURATION.format(group=choices.GROUP, ciphers=":".join(choices.CIPHERS),
                                tickets="" if site.resumption else "NumTickets = 0")
    with open(os.path.join(folder, "openssl.cnf"), "w", encoding="ascii") as file:
        file.write(text)
    return {"OPENSSL_CONF": "openssl.cnf"}
