"""Starts one of the applications in this folder; os-ken 4 has no command of its own.

    .venv/bin/python examples/os-ken/run.py learning_switch_13 --listen 127.0.0.1:6701

With --certificate, --private-key and --ca the controller speaks TLS and wants a certificate from its peer.
The application talks on stdout, one JSON object a line (events.py); os-ken's log goes to stderr.
"""

import argparse
import logging
import os
import sys
import warnings

# Read when os_ken is imported. The other kind, "native", never wakes from a wait with a timeout (os-ken 4.2),
# so that its discovery stops sending probes.
os.environ.setdefault("OSKEN_HUB_TYPE", "eventlet")
warnings.filterwarnings("ignore", message="\\s*Eventlet is deprecated")

from os_ken.lib import hub

hub.patch(thread=False)

from os_ken import cfg
from os_ken.base.app_manager import AppManager
from os_ken.ofproto import ofproto_v1_0

# os-ken 4.2 compares the type of every ERROR with this name, which its OpenFlow 1.0 lacks: each ERROR would end the
# connection. No type of OpenFlow 1.0 has this value.
ofproto_v1_0.OFPET_EXPERIMENTER = 0xFFFF


def main():
    arguments = parse()
    level = logging.DEBUG if arguments.verbose else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="%(name)s: %(message)s")
    host, port = arguments.listen.rsplit(":", 1)
    options = ["--ofp-listen-host", host.strip("[]")]
    if arguments.certificate:
        options += ["--ofp-ssl-listen-port", port, "--ofp-tcp-listen-port", port]
        options += ["--ctl-cert", arguments.certificate, "--ctl-privkey", arguments.private_key]
        options += ["--ca-certs", arguments.ca]
    else:
        options += ["--ofp-tcp-listen-port", port]
    applications = [arguments.application]
    if arguments.application in ("topology", "shortest_path", "multipath_10", "multipath_13", "multipath_blind"):
        options += ["--observe-links"]
        import os_ken.topology.switches  # noqa: F401 - it registers --observe-links
    if arguments.openflow:
        os.environ["OPENFLOW"] = arguments.openflow
    os.environ["VNICS"], os.environ["CHOOSE"] = arguments.vnics, arguments.choose
    cfg.CONF(args=options, project="os_ken")
    AppManager.run_apps(applications)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("application", help="a module of this folder")
    parser.add_argument("--listen", default="127.0.0.1:6653", metavar="ADDRESS:PORT")
    parser.add_argument("--openflow", choices=["1.0", "1.3"], help="for applications that speak both")
    parser.add_argument("--vnics", default="{}", metavar="JSON", help="for multipath_*: kbit/s by MAC address")
    parser.add_argument("--choose", choices=["labels", "random", "first"], default="labels", help="for multipath_*")
    parser.add_argument("--certificate", metavar="PEM")
    parser.add_argument("--private-key", metavar="PEM")
    parser.add_argument("--ca", metavar="PEM", help="who signs the peer's certificate")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.certificate and not (arguments.private_key and arguments.ca):
        parser.error("--certificate needs --private-key and --ca")
    return arguments


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
