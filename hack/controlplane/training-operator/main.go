// The PyTorchJob controller of Kubeflow's training operator, as a plain process beside a control plane.
//
// The stock main waits for certificates of its webhooks, which a control plane without pods cannot give it. This one
// starts the reconciler of PyTorchJobs alone: what it does with jobs and pods is the training operator's own.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	schedulerplugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
)

const kind = "PyTorchJob"

func main() {
	probe := flag.String("health-probe-bind-address", "0", "where /healthz is served")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*probe); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(probe string) error {
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, kubeflow.AddToScheme, volcano.AddToScheme, schedulerplugins.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	access, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// Its own default of 20 requests a second would make every test wait.
	access.QPS, access.Burst = 200, 400
	manager, err := ctrl.NewManager(access, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: probe,
	})
	if err != nil {
		return err
	}
	if err := manager.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return err
	}
	setup, found := controllers.SupportedSchemeReconciler[kind]
	if !found {
		return fmt.Errorf("this version has no controller of the kind %s", kind)
	}
	if err := setup(manager, common.GenNonGangSchedulerSetupFunc(), 2); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
