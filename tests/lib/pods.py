# SPDX-License-Identifier: Apache-2.0
"""Pods without Kubernetes: the shipped patch for jobs, read out of its file, and containers as a runtime
makes them, with the mounts of that patch and no others."""

import os
import re
import shutil

from built import AGENT, SOURCE

PATCH = SOURCE + "/deploy/kubernetes/job/agent.yaml"
# A root with an image and the pod's volumes. IMAGE and VOLUME: directories; MOUNTS: "inside<tab>outside" a line.
CONTAINER = """
set -eu
root=$1 host=$2; shift 2
mount -t tmpfs none "$root"
cd "$root"
mkdir -p usr proc dev tmp image data
mount --rbind /usr usr
for link in bin sbin lib lib64; do
	[ -h "/$link" ] && ln -s "$(readlink "/$link")" "$link" || {
		[ ! -d "/$link" ] || { mkdir "$link"; mount --rbind "/$link" "$link"; }; }
done
mount --rbind /dev dev
mount -t proc none proc
mount --rbind "$IMAGE" image
mount --rbind "$VOLUME" data
printf '%s\\n' "$MOUNTS" | while IFS='\t' read -r inside outside; do
	mkdir -p ".$inside"
	mount --rbind "$outside" ".$inside"
done
hostname "$host"
exec chroot . /usr/bin/env -i "$@"
"""


class Patch:
    """The variables and mounts that deploy/kubernetes/job adds to the container."""

    def __init__(self):
        with open(PATCH, encoding="utf-8") as f:
            container, volumes = f.read().split("\n      containers:\n")[1].split("\n      volumes:\n")
        self.variables = re.findall(r"^ +- name: (\w+)\n +(?:value: (.*)|valueFrom:\n +fieldRef:\n +fieldPath: (\S+))$",
                                    container, re.M)
        self.mounts = dict((name, path) for name, path in
                           re.findall(r"^ +- name: (\S+)\n +mountPath: (\S+)$", container, re.M))
        self.host_paths = dict(re.findall(r"^ +- name: (\S+)\n +hostPath:\n +path: (\S+)$", volumes, re.M))
        assert "LD_PRELOAD" in dict((v[0], v) for v in self.variables), self.variables
        assert self.host_paths and set(self.host_paths) <= set(self.mounts), (self.host_paths, self.mounts)

    def environment(self, pod, namespace):
        """As kubelet makes it: $(NAME) is a variable defined before."""
        fields = {"metadata.name": pod, "metadata.namespace": namespace}
        made = {}
        for name, value, field in self.variables:
            made[name] = fields[field] if field else re.sub(
                r"\$\((\w+)\)", lambda m: made.get(m[1], m[0]), value.strip('"'))
        return made

    def mount_lines(self, node_run, agent_directory):
        """For MOUNTS. node_run: where the node's /run lies; the agent's directory is the volume that the init
        container fills."""
        lines = []
        for name, inside in self.mounts.items():
            host = self.host_paths.get(name)
            outside = node_run + host.removeprefix("/run") if host else agent_directory
            assert os.path.isdir(outside), outside
            lines.append(f"{inside}\t{outside}")
        return "\n".join(lines)


def agent_directory(at):
    """The volume with the agent, as the init container leaves it."""
    os.makedirs(at, exist_ok=True)
    shutil.copy(AGENT, at + "/libcollwatch.so")
    return at
