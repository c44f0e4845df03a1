"""The balloons policy of the benchmark: a type of each common sort."""

from __future__ import annotations

from typing import Final

# Of the workload's containers, one of twenty gets a balloon of its own; of the
# others, seven of ten share one with their namespace, and the rest uses what is idle.
DOCUMENT: Final = """\
apiVersion: config.nri/v1alpha1
kind: BalloonsPolicy
spec:
  reservedResources: {cpu: "2"}
  allocatorTopologyBalancing: true
  balloonTypes:
    - name: own
      matchExpressions:
        - {key: pod/qosclass, operator: Equals, values: [Guaranteed]}
      maxCPUs: 8
      preferNewBalloons: true
      hideHyperthreads: true
    - name: team
      namespaces: ["team-[0-6]"]
      preferPerNamespaceBalloon: true
    - name: rest
      namespaces: ["team-*"]
      maxBalloons: 1
      shareIdleCPUsInSame: package
"""
