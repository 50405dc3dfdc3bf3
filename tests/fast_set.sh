# Tests that the fast set of ./check leaves out or takes turns in. ./check sources this file. bench/results/check.md says
# what that saves and what is lost; ./check --slow runs everything.
#
# TERATRON_FAST_SET: the longest tests do a part of what they do otherwise (tests/base/trials.h). It is a number made of the
# commit's name, so that suites with shares run another share with each commit (tests/groups.cmake, tests/base/turn.h).
# No suite that scripts/try-breaks names has shares in both builds.
commit=$(git rev-parse HEAD)
export TERATRON_FAST_SET=$((16#${commit::7}))

fast_set_of_release() {  # BUILD
  export TERATRON_SHARES='^ptx_emulated_gpu/Every/=2;^torture/Torture$=2;^ops/Every/RepeatingOperations$=2'
  export TERATRON_TESTS_OF_torture='-*CutOff*'  # mpirun alone waits ten seconds for the host
  # What runs by PTX, on the same emulated GPU with more checks (tests/CMakeLists.txt), needs not run as C++ as well.
  if [[ -d build/$1/tests/ptx ]]; then
    export TERATRON_TESTS_OF_training_emulated_gpu='-GpuTraining.InSixteen*:GpuDocuments.*:GpuGraphs.*:GpuGeneration.*'
    TERATRON_SHARES+=';^ops_(emulated_gpu|by_ptx)/Every/=2'
  fi
}

fast_set_of_sanitizers() {
  unset TERATRON_TESTS_OF_torture TERATRON_TESTS_OF_training_emulated_gpu
  # A third of what the release ran whole, and a half or a quarter of the longest suites of the others.
  export TERATRON_SHARES='^(comm|executor|model|ops|optim|train)/=3;^checkpoint/(DamagedCheckpointTest|Pickle|StagePieces)$=2'
  TERATRON_SHARES+=';^corpus/(CorpusJournal|CorpusStream|DedupStage|ExtractBody|ExtractCost|FullDisk|Overlap)$=2'
  TERATRON_SHARES+=';^eval/GenerationBatches$=2;^tasks/DamagedTaskFiles$=4;^data/GptSamples$=4'
  TERATRON_SHARES+=';^data/(BlendOfCorpora|CheckedCorpus|CorpusCopy|PairsOfSentences|RandomTexts|Segments|Tokenize)$=2'
  TERATRON_SHARES+=';^tasks/(RaceSharedData|SharedTasks|SquadPredictions|TaskFiles)$=2'
  # Where all tests were in the release, some stand for others: of what processes exchange, three and those between hosts;
  # of the operations' trials, one run of each CPU kernel beside the reference.
  left_out='*/ProcessRanks.TwoAreExact*:*/ProcessRanks.FourAreExact*:Every/RepeatingOperations.*:Every/Operations.*/reference_*'
  left_out+=':Every/CopyViews.*/reference_*'
  # Long trainings and long lists, whose code the shorter tests beside them run too.
  left_out+=':PipelineLayout.ChangesNothingOnTheCpu*:PipelineLayout.SixteenBit*:PipelineLayout.Recomputing*'
  left_out+=':Layout.ChangesNothingOnTheCpu*:Layout.SixteenBit*:MuonLayout.EveryPrecision*:StagePlan.IsWhatLiveRanksTake*'
  left_out+=':AsyncSave.CheckpointsAre*:PipelineLayout.GivesTheSameBitsAgain*:BertTraining.LayoutsChangeNothing'
  left_out+=':TextVectorHead.LayoutChangesNothing:TrainerTest.AnyNumberOfThreads*:Doctors.*:MixedPrecision.*:EarlyEnd.*:BestOfRun.*'
  left_out+=':MuonTraining.*:PipelineTraining.*:DivergedRun.*:MemoryRemedies.*:Recipes.FitThePapersDevices'
  export TERATRON_TESTS="-$not_under_sanitizers:$left_out"
}
